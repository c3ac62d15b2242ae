"""The walls that hold a run's tools: which are chosen, which hold, and what none at all takes."""

import asyncio
import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.abuse.ordinary import as_ordinary_user, fresh_uid
from tests.acceptance.command import FIX, TASK, Command
from tests.acceptance.forks import Forks
from tests.acceptance.shell import shell
from tests.acceptance.test_eval import instance
from tests.containers import names_of
from tests.images.debian import require_image

from turnout.testing.model_server import ScriptedModelServer
from turnout.testing.repositories import PAGINATION_FIXED, TinyRepository, buggy_pagination

SOURCES = Path(__file__).parents[2] / "src"
MIB = 1 << 20
CONTAINERS = """
[sandbox]
driver = "container"
[sandbox.container]
engine = "podman"
runtime = "runc"
image = "{image}"
"""
NO_WALLS = "Nothing isolates the tools of this run from this machine."


def left_unwalled(state: Path) -> list[Path]:
    """Return the folders of sandboxes without walls that are left."""
    return [*(state / "unconfined" / "sandboxes").iterdir()]


async def test_no_walls_at_all_are_had_by_saying_so_and_are_on_record(
    turnout: Command, pages: TinyRepository, state: Path
) -> None:
    """The run is the same, with a warning on the screen and in what is kept."""
    async with ScriptedModelServer(FIX, models=["m"]) as server:
        run = ("run", TASK, "--repo", str(pages), "--sandbox", "none")
        done = await turnout.using(server.base_url)(*run)
    result = (await turnout("runs", "show", "--json")).object
    assert done.code == 0, done.err
    assert f"warning: {NO_WALLS}\n" in done.err
    assert (result["isolation"], result["verdict"]["name"]) == ("none", "resolved")
    assert NO_WALLS in result["warnings"]
    assert NO_WALLS in (await turnout("runs", "show", "--full")).out
    assert left_unwalled(state) == []


async def test_no_walls_are_no_setting_of_the_file(turnout: Command, pages: TinyRepository) -> None:
    """They have to be asked for at each run."""
    turnout.configured('[sandbox]\ndriver = "none"\n')
    done = await turnout("run", TASK, "--repo", str(pages))
    assert (done.code, done.out) == (2, "")
    assert "turnout.toml" in done.err
    assert "`turnout run --sandbox none`" in done.err


@pytest.mark.parametrize(
    ("driver", "lacking", "mend"),
    [
        ("bubblewrap", "bubblewrap: not installed", "apt-get install bubblewrap"),
        ("container", "Podman or Docker is not installed", "apt-get install podman"),
        ("kubernetes", "No cluster is configured", "name a kubeconfig"),
    ],
)
async def test_walls_that_cannot_be_had_refuse_the_run(
    turnout: Command, pages: TinyRepository, driver: str, lacking: str, mend: str
) -> None:
    """What is lacking and what mends it are said; no model is asked, nothing runs unwalled."""
    (turnout.folder / "bin").mkdir()
    for program in ("git", "env"):
        (turnout.folder / "bin" / program).symlink_to(f"/usr/bin/{program}")
    command = turnout.where(PATH=str(turnout.folder / "bin"))
    async with ScriptedModelServer(models=["m"]) as server:
        run = ("run", TASK, "--repo", str(pages), "--sandbox", driver)
        done = await command.using(server.base_url)(*run)
        assert server.requests == []
    assert (done.code, done.out) == (4, "")
    assert lacking in done.err
    assert mend in done.err


async def test_an_image_that_is_not_there_is_named(turnout: Command, pages: TinyRepository) -> None:
    """With how to build it; nothing is pulled."""
    if shutil.which("podman") is None:
        pytest.skip("not installed: podman")
    turnout.configured(CONTAINERS.format(image="turnout-example-absent"))
    async with ScriptedModelServer(models=["m"]) as server:
        done = await turnout.using(server.base_url)("run", TASK, "--repo", str(pages))
        assert server.requests == []
    assert (done.code, done.out) == (4, "")
    assert "has no image `turnout-example-absent`" in done.err
    assert "podman build -t turnout-example-absent deploy/sandbox-image" in done.err


async def test_a_whole_run_in_containers(
    turnout: Command, pages: TinyRepository, state: Path
) -> None:
    """Every sandbox of it is one; none is left."""
    turnout.configured(CONTAINERS.format(image=await asyncio.to_thread(require_image)))
    async with ScriptedModelServer(FIX, models=["m"]) as server:
        done = await turnout.using(server.base_url)("run", TASK, "--repo", str(pages), "--json")
    result = done.object
    assert (done.code, result["verdict"]["name"]) == (0, "resolved"), done.err
    assert result["isolation"].startswith("podman+runc+seccomp")
    assert names_of(state) == set()


async def test_what_a_run_used_is_on_record(turnout: Command, pages: TinyRepository) -> None:
    """Processor, memory, disk and how long it was frozen while the model thought."""
    hold = "b = bytearray(64 << 20); open('/tmp/f', 'wb').write(bytes(3 << 20)); sum(range(10**6))"
    plan, first, second, *rest = shell(f'python -c "{hold}"', "true")
    turnout.configured("[sandbox]\nidle_seconds = 0.2\n")
    turns = (plan, first, replace(second, delay=1.5), *rest)
    async with ScriptedModelServer(turns, models=["m"]) as server:
        run = ("run", TASK, "--repo", str(pages), "--surface", "shell", "--json")
        result = (await turnout.using(server.base_url)(*run)).object
    used = result["resources"]
    if result["isolation"].rpartition("+")[2].startswith("cgroup"):
        assert used["cpu_seconds"] > 0
        assert used["peak_memory_bytes"] > 64 * MIB
    if used["disk_bytes"] is not None:
        assert 3 * MIB <= used["disk_bytes"] < 64 * MIB
    assert 0.5 < used["frozen_seconds"] < used["wall_seconds"]
    shown = (await turnout("runs", "show", "--full")).out
    told = re.search(r"of these frozen: ([0-9.]+)", shown)
    assert told is not None
    assert abs(float(told[1]) - used["frozen_seconds"]) < 0.1


async def test_doctor_says_what_the_walls_hold(turnout: Command) -> None:
    """Each wall is a row, for people and for scripts; what a run may reach is one, too."""
    turnout.configured('[policy.egress]\nallow = ["api.example.org"]\npackages = true\n')
    async with ScriptedModelServer(models=["m"]) as server:
        command = turnout.using(server.base_url)
        told = (await command("doctor", "--json")).object
        shown = (await command("doctor")).out
    checks = {check["name"]: check for check in told["checks"]}
    walls = ("freezer", "disk cap", "file count cap", "overlay workspace", "egress", "secrets")
    assert set(checks) >= {f"wall: {wall}" for wall in walls}
    assert all(check["detail"] for check in checks.values())
    assert "sandbox: container" in checks
    assert checks["egress"]["detail"] == "runs may reach api.example.org, package mirrors"
    for check in checks.values():
        assert f"{check['name']} " in shown
        assert check["detail"] in shown


async def test_an_evaluation_takes_the_walls_that_are_named(
    turnout: Command, pages: TinyRepository
) -> None:
    """For the runs and for the hidden tests."""
    (turnout.folder / "tasks.jsonl").write_text(instance(pages, "right"))
    async with ScriptedModelServer(FIX, models=["m"]) as server:
        evaluate = turnout.using(server.base_url)
        done = await evaluate("eval", "run", "tasks.jsonl", "--sandbox", "none", "--json")
    assert done.code == 0, done.err
    assert [trial["grade"] for trial in done.object["trials"]] == ["resolved"]
    assert (await turnout("runs", "show", "--json")).object["isolation"] == "none"


@dataclass(frozen=True)
class OrdinaryUser(Command):
    """The command as a user who owns one folder, started by root."""

    uid: int

    async def start(
        self, *arguments: str, stdin: int = asyncio.subprocess.DEVNULL
    ) -> asyncio.subprocess.Process:
        """Start it as that user; skips where the means are missing."""
        program = [sys.executable, "-m", "turnout", *arguments]
        argv = as_ordinary_user(self.uid, program, [self.folder, SOURCES])
        if argv is None:
            pytest.skip("not installed: unshare, setpriv")
        return await asyncio.create_subprocess_exec(
            *argv,
            cwd=self.folder,
            env=self.environment,
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )


@pytest.fixture
def home() -> Iterator[tuple[Path, int]]:
    """Make the home of a user who owns nothing else, with a repository in it."""
    if os.geteuid() != 0:
        pytest.skip("the tests run as an ordinary user: all others prove it")
    uid = fresh_uid()
    with TemporaryDirectory(prefix="turnout-user-") as folder:
        buggy_pagination(Path(folder, "pages"))
        for path in (Path(folder), *Path(folder).rglob("*")):
            os.lchown(path, uid, uid)
        yield Path(folder), uid


async def test_an_ordinary_user_gets_the_same(home: tuple[Path, int], forks: Forks) -> None:
    """Without a right or a setting of its own, and with a state folder in its home."""
    folder, uid = home
    async with ScriptedModelServer(FIX, models=["m"]) as server:
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "LLM_BASE_URL": server.base_url,
        }
        command = OrdinaryUser(folder, environment, forks, uid)
        done = await command("run", TASK, "--repo", "pages", "--apply")
    if "This machine has no usable sandbox" in done.err:
        pytest.skip(done.err)
    assert done.code == 0, done.err
    assert "Verdict: resolved" in done.out
    assert "namespaces+seccomp" in done.err
    assert (folder / "pages/pages.py").read_text() == PAGINATION_FIXED
    assert (folder / "pages/pages.py").stat().st_uid == uid
    assert (folder / ".local/state/turnout/turnout.db").stat().st_uid == uid
