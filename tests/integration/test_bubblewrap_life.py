"""How bubblewrap sandboxes end, and what is left of them: nothing."""

import asyncio
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.sandboxes import RUN, SMALL, alive, all_commands, cgroups, said, started

from turnout.core.ids import RunId
from turnout.errors import SandboxDiedError, SandboxUnavailableError
from turnout.sandbox.base import Command
from turnout.sandbox.bubblewrap import BubblewrapDriver, BubblewrapSandbox

pytestmark = pytest.mark.abuse

UNTIL_SLEEPING = "until pgrep -x sleep; do sleep 0.01; done"
KILLED_SERVICE = """
import asyncio, os, sys
from pathlib import Path
from turnout.core.ids import RunId
from turnout.sandbox.base import Command, Limits
from turnout.sandbox.bubblewrap import BubblewrapDriver

async def main():
    driver = BubblewrapDriver(Path(sys.argv[1]))
    sandbox = await driver.start_bare(RunId("run-0000000dead0"), (), Limits())
    async for _ in sandbox.exec(Command(shell=f"echo up; exec sleep {sys.argv[2]}")):
        print("up", flush=True)

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> BubblewrapDriver:
    """Return one driver, so that the walls are tried once."""
    return BubblewrapDriver(tmp_path_factory.mktemp("state"))


@pytest.fixture
async def sandbox(driver: BubblewrapDriver) -> AsyncIterator[BubblewrapSandbox]:
    """Start a small sandbox."""
    async with started(driver) as each:
        yield each


def descriptors() -> int:
    """Return how many descriptors this process has."""
    return len(list(Path("/proc/self/fd").iterdir()))


def registered(driver: BubblewrapDriver) -> set[str]:
    """Return the names of the sandboxes that a driver's state folder knows."""
    return {path.stem for path in (driver.state_dir / "sandboxes").iterdir()}


def run_and_kill(state: Path, marker: str) -> bool:
    """Kill a service while a command runs in its sandbox; False where it cannot make one."""
    service = subprocess.Popen(
        [sys.executable, "-c", KILLED_SERVICE, str(state), marker], stdout=subprocess.PIPE
    )
    assert service.stdout is not None
    with service.stdout as output:
        up = output.readline() == b"up\n"
        service.kill()
        service.wait()
    return up


async def gone(text: str) -> None:
    """Wait until no process of the host has `text` in its command line."""
    async with asyncio.timeout(5):
        for _ in iter(lambda: text in all_commands(), False):
            await asyncio.sleep(0.01)


async def test_a_closed_sandbox_leaves_nothing(driver: BubblewrapDriver) -> None:
    """No process, no control group, no file, no descriptor."""
    marker = f"96{os.getpid()}"
    stays = Command(shell=f"sleep {marker} &", background=True)
    async with started(driver) as sandbox:
        await sandbox.run(stays)
    before = descriptors()
    async with started(driver) as sandbox:
        await sandbox.run(stays)
        assert f"sleep\0{marker}" in all_commands()
        names = registered(driver)
        assert len(names) == 1
    assert descriptors() == before
    assert not registered(driver)
    assert f"sleep\0{marker}" not in all_commands()
    assert not names & {Path(group).name for group in cgroups()}


async def test_a_sandbox_whose_agent_dies_says_so(driver: BubblewrapDriver) -> None:
    """The end of process 1 inside is the end for every caller."""
    async with started(driver) as sandbox:
        running = asyncio.create_task(sandbox.run(Command(shell="sleep 981")))
        await said(sandbox, UNTIL_SLEEPING)
        sandbox.kill()
        with pytest.raises(SandboxDiedError):
            await running
        with pytest.raises(SandboxDiedError):
            await sandbox.read("a")


async def test_a_killed_service_leaves_nothing_after_reaping(tmp_path: Path) -> None:
    """Processes die with it; `reap` removes the rest, and nothing of runs that are known."""
    marker = f"97{os.getpid()}"
    if not await asyncio.to_thread(run_and_kill, tmp_path, marker):
        pytest.skip("no sandbox can be started here")
    driver = BubblewrapDriver(tmp_path)
    await gone(f"sleep\0{marker}")
    run_id = RunId("run-0000000dead0")
    assert await driver.reap(frozenset({run_id})) == ()
    names = registered(driver)
    assert len(names) == 1
    assert await driver.reap(frozenset()) == (run_id,)
    assert not registered(driver)
    assert not names & {Path(group).name for group in cgroups()}


async def test_reaping_spares_what_a_living_service_holds(driver: BubblewrapDriver) -> None:
    """A sandbox in use is not taken from its service by another one."""
    async with started(driver) as sandbox:
        other = BubblewrapDriver(driver.state_dir)
        assert await other.reap(frozenset()) == ()
        assert await alive(sandbox)


async def test_the_driver_says_what_holds(driver: BubblewrapDriver) -> None:
    """Each wall is named, with a reason where it does not hold."""
    capabilities = await driver.probe()
    assert capabilities.driver == "bubblewrap"
    assert all(holds or reason for _, holds, reason in capabilities.facts)
    assert capabilities.usable == capabilities.isolation.startswith("namespaces+seccomp")


async def test_a_missing_bubblewrap_is_named_with_its_mend(tmp_path: Path) -> None:
    """The error says what to install."""
    driver = BubblewrapDriver(tmp_path, bubblewrap="/nonexistent/bwrap")
    capabilities = await driver.probe()
    assert not capabilities.usable
    with pytest.raises(SandboxUnavailableError, match="apt-get install bubblewrap"):
        await driver.start_bare(RUN, (), SMALL)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become an ordinary user")
def test_the_walls_hold_for_an_ordinary_user() -> None:
    """The same attempts, made by a service that is not root, with less to limit them."""
    system = Path("/usr/bin/python3")
    wanted = f"{sys.version_info.major}.{sys.version_info.minor}"
    has = subprocess.run([system, "-V"], capture_output=True, text=True, check=False).stdout
    setpriv = shutil.which("setpriv")
    if setpriv is None or f"Python {wanted}." not in has:
        pytest.skip("no setpriv, or no system Python of this version for another user to run")
    root = Path(__file__).parents[2]
    files = sorted(Path(__file__).parent.glob("test_bubblewrap_*.py"))
    folder = Path("/tmp") / f"turnout-nobody-{os.getpid()}"
    folder.mkdir(mode=0o700)
    os.chown(folder, 65534, 65534)
    try:
        result = subprocess.run(
            [
                setpriv,
                "--reuid",
                "65534",
                "--regid",
                "65534",
                "--clear-groups",
                "--",
                system,
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:cacheprovider",
                "-p",
                "no:xdist",
                *map(str, files),
            ],
            env={
                "PATH": "/usr/bin:/bin",
                "HOME": str(folder),
                "TMPDIR": str(folder),
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTHONPATH": f"{root / 'src'}:{sysconfig.get_path('purelib')}",
            },
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
    finally:
        shutil.rmtree(folder)
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-2000:]
    assert " passed" in result.stdout
    assert "did not start" not in result.stdout
