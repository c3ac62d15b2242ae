"""How a sandbox that was asked for comes to be."""

from dataclasses import replace
from pathlib import Path

import pytest

from turnout.core.ids import RunId
from turnout.errors import ConfigError, SandboxError, UsageError
from turnout.sandbox.base import NO_EGRESS, BaseRef, BaseSpec, Egress, LayerRef, Limits
from turnout.sdk import Sandbox
from turnout.sdk.opening import Source
from turnout.settings import Settings, load_settings
from turnout.testing.repositories import TinyRepository
from turnout.testing.sandbox import ScriptedDriver, ScriptedSandbox

EMPTY = BaseSpec(repository=None, requirements=())


class ForgetfulDriver(ScriptedDriver):
    """A driver that lost its base layers once."""

    def __init__(self) -> None:
        super().__init__()
        self.lost = False

    async def create(
        self,
        run_id: RunId,
        base: BaseRef,
        limits: Limits,
        *,
        egress: Egress = NO_EGRESS,
        layer: LayerRef | None = None,
    ) -> ScriptedSandbox:
        """Make a sandbox, unless its base is lost."""
        if self.lost:
            self.lost = False
            raise SandboxError("The base layer is no longer there.")
        return await super().create(run_id, base, limits, egress=egress, layer=layer)


async def test_a_base_is_prepared_once(settings: Settings) -> None:
    """The second sandbox of a program waits for nothing but itself."""
    driver = ForgetfulDriver()
    source = Source(driver, settings)
    first = await source.start(EMPTY, [], ("old",))
    await source.start(EMPTY, [], ())
    assert len(driver.prepared) == 1
    assert len(driver.created) == 2
    assert first.warnings == ("old",)


async def test_a_base_that_is_gone_is_prepared_again(settings: Settings) -> None:
    """The state folder may be cleared at any time."""
    driver = ForgetfulDriver()
    source = Source(driver, settings)
    await source.start(EMPTY, [], ())
    driver.lost = True
    await source.start(EMPTY, [], ())
    assert len(driver.prepared) == 2


def test_a_file_that_came_with_a_repository_counts_only_where_it_is_named(
    driver: ScriptedDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must not configure the machine that works on it."""
    repository = TinyRepository(tmp_path / "theirs", {"turnout.toml": "[sandbox]\npids = 77\n"})
    monkeypatch.chdir(repository.path)
    with pytest.raises(ConfigError, match=r'config="turnout\.toml"'):
        Sandbox.create(driver=driver)
    with Sandbox.create(driver=driver, config="turnout.toml"):
        assert driver.created[0].limits.pids == 77


def test_a_repository_is_checked_out_at_the_revision_asked_for(
    driver: ScriptedDriver, settings: Settings, tmp_path: Path
) -> None:
    """Its full name is what the driver is told."""
    repository = TinyRepository(tmp_path / "mine", {"a.py": ""})
    first = repository.head
    repository.commit("second", {"a.py": "x = 1\n"})
    repository.write({"a.py": "x = 2\n"})
    with Sandbox.create(
        driver=driver, config=settings, repository=repository.path, base="HEAD~1"
    ) as sandbox:
        assert "not committed" in sandbox.warnings[0]
    assert driver.prepared == [BaseSpec(str(repository.path), first)]


def test_a_set_up_command_is_for_a_repository(
    driver: ScriptedDriver, settings: Settings, tmp_path: Path
) -> None:
    """The caller's own counts before that of the settings."""
    repository = TinyRepository(tmp_path / "mine", {"a.py": ""})
    settings = replace(settings, setup="make ready")
    for given in ({}, {"setup": "./bootstrap"}):
        with Sandbox.create(driver=driver, config=settings, repository=repository.path, **given):
            pass
    with Sandbox.create(driver=driver, config=settings):
        pass
    assert [spec.setup for spec in driver.prepared] == ["make ready", "./bootstrap", None]
    with pytest.raises(UsageError, match="is for a repository"):
        Sandbox.create(driver=driver, config=settings, setup="make")
    with pytest.raises(UsageError, match="no program can be given"):
        Sandbox.create(driver=driver, config=settings, repository=repository.path, setup="a\0b")


def test_sizes_and_hosts_come_from_the_settings(driver: ScriptedDriver, tmp_path: Path) -> None:
    """As for runs."""
    (tmp_path / "turnout.toml").write_text(
        "[sandbox]\nmemory_mb = 640\n\n[policy.egress]\nallow = ['example.org']\n"
    )
    settings = load_settings(environment={"TURNOUT_HOME": str(tmp_path)}, directory=tmp_path)
    with Sandbox.create(driver=driver, config=settings, allow=["example.org"]):
        made = driver.created[0]
    assert made.limits.memory_bytes == 640 << 20
    assert [rule.host for rule in made.egress.rules] == ["example.org", "example.org"]
