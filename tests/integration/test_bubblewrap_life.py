"""How bubblewrap sandboxes end, and what is left of them: nothing."""

import asyncio
import gc
import itertools
import os
import resource
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.sandboxes import (
    RUN,
    SMALL,
    alive,
    all_commands,
    cgroups,
    processes,
    said,
    started,
)

from turnout.core.ids import RunId
from turnout.errors import SandboxDiedError, SandboxUnavailableError
from turnout.sandbox.base import Command
from turnout.sandbox.bubblewrap import BubblewrapDriver, BubblewrapSandbox
from turnout.sandbox.walls.launcher import readable_within

pytestmark = pytest.mark.abuse

MARKERS = itertools.count(1_000_000 + 100 * os.getpid())
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

CONTINUES_ITSELF = """
import ctypes, signal, struct, time
signal.signal(signal.SIGCONT, lambda *_: None)
libc, timer, real_time = ctypes.CDLL(None), ctypes.c_void_p(), 0
event = struct.pack("Pii48x", 0, signal.SIGCONT, 0)
assert libc.timer_create(real_time, event, ctypes.byref(timer)) == 0
while True:
    libc.timer_settime(timer, 0, struct.pack("llll", 0, 0, 0, 200_000_000), None)
    open("up", "w").close()
    until = time.monotonic() + 0.01
    while time.monotonic() < until:
        pass
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
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


def registered(driver: BubblewrapDriver) -> set[str]:
    """Return the names of the sandboxes that a driver's state folder knows."""
    return {path.stem for path in (driver.state_dir / "sandboxes").iterdir()}


async def launcher_of(sandbox: BubblewrapSandbox) -> int:
    """Return the process that started a sandbox: the parent of the parent of process 1 inside."""
    marker = str(next(MARKERS))
    await sandbox.run(Command(shell=f"sleep {marker} &", background=True))
    (sleep,) = (path for path, line in processes().items() if line == f"sleep\0{marker}\0")
    path = sleep
    for _ in range(3):
        parent = (path / "stat").read_text().rpartition(")")[2].split()[1]
        path = Path("/proc", parent)
    return int(path.name)


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
    assert descriptors() <= before
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


async def test_sandboxes_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    """The next one is started by another such process, and nothing is left of the first."""
    driver = BubblewrapDriver(tmp_path)
    async with started(driver) as first, started(driver) as second:
        launcher = await launcher_of(first)
        assert await launcher_of(second) == launcher
        os.kill(launcher, signal.SIGKILL)
        for sandbox in (first, second):
            with pytest.raises(SandboxDiedError):
                await sandbox.run(Command(shell="sleep 60"))
        async with started(driver) as third:
            assert await alive(third)
            assert await launcher_of(third) != launcher
    assert not registered(driver)


async def test_the_process_that_starts_sandboxes_ends_with_the_last(tmp_path: Path) -> None:
    """It is nobody's child: driver and sandboxes keep it alive, each by itself."""
    try:
        sandbox = await BubblewrapDriver(tmp_path).start_bare(RUN, (), SMALL)
    except SandboxUnavailableError as error:
        pytest.skip(str(error))
    gc.collect()
    ended = os.pidfd_open(await launcher_of(sandbox))
    await sandbox.close()
    del sandbox
    gc.collect()
    try:
        assert await readable_within(ended, 5)
    finally:
        os.close(ended)


async def test_a_start_that_nobody_awaits_leaves_nothing(driver: BubblewrapDriver) -> None:
    """Given up at any moment, neither process nor group nor descriptor stays."""
    async with started(driver) as sandbox:
        assert await alive(sandbox)
    before = descriptors()
    for milliseconds in range(0, 30, 3):
        starting = asyncio.create_task(driver.start_bare(RUN, (), SMALL))
        await asyncio.sleep(milliseconds / 1000)
        starting.cancel()
        with suppress(asyncio.CancelledError):
            await (await starting).close()
    assert descriptors() <= before
    assert not registered(driver)


async def test_a_start_that_runs_out_of_descriptors_leaves_none(driver: BubblewrapDriver) -> None:
    """Whichever of those that it needs is the first that cannot be had."""
    async with started(driver):
        os.close(lowest := os.dup(0))
    held = descriptors()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    failures = []
    for few in range(1, 20):
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + few, limits[1]))
        try:
            await (await driver.start_bare(RUN, (), SMALL)).close()
        except SandboxUnavailableError as error:
            failures.append(error.message)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert len(failures) > 10
    assert all("Too many open files" in failure for failure in failures)
    gc.collect()
    assert descriptors() <= held


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


async def test_what_has_itself_continued_is_ended(driver: BubblewrapDriver) -> None:
    """A timer wakes a process that was stopped; the others stand still as before."""
    async with started(driver) as sandbox:
        await sandbox.write("/repo/awake.py", CONTINUES_ITSELF.encode())
        begin = "sleep 60 & python3 awake.py & until [ -e up ]; do sleep 0.01; done"
        await sandbox.run(Command(shell=begin, background=True))
        await sandbox.pause()
        await asyncio.sleep(2.5)
        await sandbox.resume()
        assert await said(sandbox, "pgrep -f '[a]wake.py' || pgrep -c sleep") == "1\n"


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
@pytest.mark.parametrize("names", [("walls", "limits"), ("life", "layers")], ids="-".join)
def test_the_walls_hold_for_an_ordinary_user(names: tuple[str, ...]) -> None:
    """The same attempts, made by a service that is not root, with less to limit them."""
    system = Path("/usr/bin/python3")
    wanted = f"{sys.version_info.major}.{sys.version_info.minor}"
    has = subprocess.run([system, "-V"], capture_output=True, text=True, check=False).stdout
    setpriv = shutil.which("setpriv")
    if setpriv is None or f"Python {wanted}." not in has:
        pytest.skip("no setpriv, or no system Python of this version for another user to run")
    root = Path(__file__).parents[2]
    files = [Path(__file__).with_name(f"test_bubblewrap_{name}.py") for name in names]
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
                "pytest_asyncio.plugin",
                "--assert=plain",
                *map(str, files),
            ],
            env={
                "PATH": "/usr/bin:/bin",
                "HOME": str(folder),
                "TMPDIR": str(folder),
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTHONPATH": f"{root / 'src'}:{sysconfig.get_path('purelib')}",
            },
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    finally:
        shutil.rmtree(folder)
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-2000:]
    assert " passed" in result.stdout
    assert "did not start" not in result.stdout
