"""What is found out about an image, with a program that answers as an engine does."""

import base64
import platform
from pathlib import Path

import pytest
from tests.engines import DOCKER, FakeEngine, docker_info

from turnout.core.ids import RunId
from turnout.errors import SandboxUnavailableError
from turnout.sandbox.base import Egress, HostRule, Limits
from turnout.sandbox.container.driver import ContainerDriver
from turnout.sandbox.container.engines.complaints import why_not
from turnout.sandbox.container.engines.survey import Survey, survey
from turnout.sandbox.container.options import ContainerOptions
from turnout.sandbox.walls.launcher import Launcher

IMAGE = [{"Id": "sha256:0123456789abcdef", "Config": {"Volumes": None}}]
FOUND = {
    "python": "/usr/local/bin/python3",
    "version": "3.12.1",
    "machine": platform.machine(),
    "glibc": True,
    "missing": [],
    "uid": 1000,
    "filtered": True,
    "no_new_privileges": True,
    "capabilities": False,
    "memory_limit": 1 << 30,
    "agent": base64.b64encode(b"compiled").decode(),
}


@pytest.fixture
def engine(tmp_path: Path) -> FakeEngine:
    """Return a Docker that answers to all but `run`."""
    fake = FakeEngine(tmp_path / "bin").answer("info", docker_info())
    return fake.answer("image inspect", IMAGE)


def options(engine: FakeEngine, runtime: str = "") -> ContainerOptions:
    """Return options that name it."""
    return ContainerOptions(
        engine="docker", program=str(engine.program), image="mine", runtime=runtime
    )


async def surveyed(engine: FakeEngine, folder: Path, runtime: str = "") -> Survey:
    """Find out."""
    return await survey(options(engine, runtime), folder, Launcher())


async def refused(engine: FakeEngine, folder: Path) -> str:
    """Return why containers cannot be used; it says what would help."""
    with pytest.raises(SandboxUnavailableError) as raised:
        await surveyed(engine, folder)
    assert raised.value.mend
    return str(raised.value)


async def test_an_image_is_taken_as_it_is_found(engine: FakeEngine, tmp_path: Path) -> None:
    """Its interpreter and the agent compiled for that; by its id from then on."""
    engine.answer("run", FOUND)
    found = await surveyed(engine, tmp_path / "state")
    assert (found.python, found.image) == ("/usr/local/bin/python3", "sha256:0123456789abcdef")
    assert found.programs["resident.pyc"] == b"compiled"
    assert found.isolation == "docker+runc+seccomp+cgroup-v2"
    assert all(why for _, _, why in found.facts())


async def test_the_first_container_has_the_walls_of_all(engine: FakeEngine, tmp_path: Path) -> None:
    """It is never pulled, and not root's."""
    engine.answer("run", FOUND)
    await surveyed(engine, tmp_path / "state")
    (words,) = [asked for asked in engine.asked if asked[0] == "run"]
    assert {"--pull=never", "--network=none", "--cap-drop=ALL", "--read-only"} <= set(words)
    (user,) = [word for word in words if word.startswith("--user=")]
    assert user != "--user=0:0"
    assert any(word.startswith("--security-opt=seccomp=/") for word in words)


async def test_a_missing_image_is_not_pulled(tmp_path: Path) -> None:
    """The error says how to get one."""
    engine = FakeEngine(tmp_path / "bin").answer("info", docker_info())
    engine.answer("image inspect", stderr="No such image: mine", code=1)
    assert "docker build -t mine" in await refused(engine, tmp_path / "state")
    assert {asked[0] for asked in engine.asked} == {"info", "image"}


async def test_an_image_with_volumes_is_refused_where_they_cannot_be_left_out(
    tmp_path: Path,
) -> None:
    """Nothing bounds what is written there."""
    engine = FakeEngine(tmp_path / "bin").answer("info", docker_info())
    engine.answer("image inspect", [{"Id": "a", "Config": {"Volumes": {"/data": {}}}}])
    assert "declares volumes" in await refused(engine, tmp_path / "state")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"missing": ["git", "tar"]}, "has no git, tar"),
        ({"machine": "pdp11"}, "is one for pdp11"),
        ({"glibc": False}, "another C library"),
        ({"uid": 0}, "did not apply the walls"),
        ({"capabilities": True}, "did not apply the walls"),
        ({"filtered": False}, "did not apply the walls"),
        ({"no_new_privileges": False}, "did not apply the walls"),
    ],
)
async def test_what_does_not_hold_is_refused(
    engine: FakeEngine, tmp_path: Path, found: dict[str, object], expected: str
) -> None:
    """The engine's word is not enough: it was looked at from inside."""
    engine.answer("run", FOUND | found)
    assert expected in await refused(engine, tmp_path / "state")


async def test_a_limit_that_does_not_show_inside_is_not_claimed(
    engine: FakeEngine, tmp_path: Path
) -> None:
    """The agent then looks after memory itself."""
    engine.answer("run", FOUND | {"memory_limit": None})
    found = await surveyed(engine, tmp_path / "state")
    assert not found.limited
    assert found.isolation == "docker+runc+seccomp+rlimits"


async def test_a_kernel_of_its_own_needs_no_filter(engine: FakeEngine, tmp_path: Path) -> None:
    """What runs on it does not reach the host's; the name of the walls does not claim one."""
    engine.answer("run", FOUND | {"filtered": False, "no_new_privileges": False})
    found = await surveyed(engine, tmp_path / "state", runtime="runsc")
    assert found.isolation == "docker+runsc+cgroup-v2"
    assert not found.direct


async def test_a_kernel_of_its_own_reaches_nothing(engine: FakeEngine, tmp_path: Path) -> None:
    """No socket of its network can be handed over, so the run is not started at all."""
    engine.answer("run", FOUND | {"filtered": False})
    async with ContainerDriver(tmp_path, options=options(engine, "kata")) as driver:
        egress = Egress((HostRule("site.test"),))
        with pytest.raises(SandboxUnavailableError, match="from containers of kata"):
            await driver.start_bare(RunId("run-1"), (), Limits(), egress=egress)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Error: crun: setting rlimit: operation not permitted", "`ulimits`"),
        ("docker: Error response from daemon: unknown or invalid runtime name: x.", "`runtime`"),
        ('Error: default OCI runtime "kata" not found: invalid argument', "`runtime`"),
        ("there is no python3 in it", "no python3"),
    ],
)
async def test_a_container_that_does_not_start_says_what_would_help(
    engine: FakeEngine, tmp_path: Path, said: str, expected: str
) -> None:
    """By what the engine complains about."""
    engine.answer("run", stderr=f"{said}\n", code=126)
    with pytest.raises(SandboxUnavailableError, match="Docker started no container") as raised:
        await surveyed(engine, tmp_path / "state")
    assert expected in str(raised.value)


def test_an_engine_that_says_nothing_is_named_all_the_same() -> None:
    """With no more to go by."""
    assert "it printed nothing" in str(why_not(DOCKER, ""))


async def test_the_probe_of_a_driver_never_raises(tmp_path: Path) -> None:
    """It says why not, and what would help."""
    options = ContainerOptions(program=str(tmp_path / "nowhere"))
    async with ContainerDriver(tmp_path / "state", options=options) as driver:
        found = await driver.probe()
        assert (found.driver, found.usable, found.isolation) == ("container", False, "none")
        ((_, holds, why),) = found.facts
        assert not holds
        assert "not installed. Run `sudo apt-get install podman`" in why
        assert await driver.reap(frozenset()) == ()


async def test_the_engine_is_asked_once(engine: FakeEngine, tmp_path: Path) -> None:
    """A second probe has the same answer."""
    engine.answer("run", FOUND)
    async with ContainerDriver(tmp_path / "state", options=options(engine)) as driver:
        first = await driver.probe()
        assert first.usable
        asked = len(engine.asked)
        assert await driver.probe() == first
        assert len(engine.asked) == asked
        assert driver.python == "/usr/local/bin/python3"
        assert str(driver.state_dir).startswith(str(tmp_path / "state"))
