"""Sandboxes without walls: what is left of them, and the tests of a repository in them."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from turnout.core.ids import RunId, new_run_id
from turnout.errors import SandboxDiedError, SandboxUnavailableError
from turnout.sandbox.base import (
    NO_EGRESS,
    NO_WALLS,
    BaseSpec,
    BoundSecret,
    Command,
    Egress,
    HostRule,
    Limits,
    Sandbox,
)
from turnout.sandbox.testrun import run_tests
from turnout.sandbox.unconfined.driver import UnconfinedDriver
from turnout.testing.repositories import PAGINATION_FIXED, PAGINATION_TEST, buggy_pagination

KILLED_SERVICE = """
import asyncio, sys
from pathlib import Path
from turnout.core.ids import RunId
from turnout.sandbox.base import Command, Limits
from turnout.sandbox.unconfined.driver import UnconfinedDriver

async def main():
    driver = UnconfinedDriver(Path(sys.argv[1]))
    sandbox = await driver.start_bare(RunId("run-0000000dead1"), (), Limits())
    async for _ in sandbox.exec(Command(shell=f"setsid {sys.argv[2]} & echo up; wait")):
        print("up", flush=True)

asyncio.run(main())
"""
NAP = f"sleep 32.{os.getpid()}"


@asynccontextmanager
async def started(driver: UnconfinedDriver, egress: Egress = NO_EGRESS) -> AsyncIterator[Sandbox]:
    """Start a bare sandbox and end it."""
    sandbox = await driver.start_bare(new_run_id(), (), Limits(), egress=egress)
    try:
        yield sandbox
    finally:
        await sandbox.close()


def folders(state: Path) -> list[Path]:
    """Return the folders of sandboxes in a state folder."""
    return list((state / "unconfined" / "sandboxes").glob("*"))


def descriptors() -> int:
    """Return how many descriptors this process has."""
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


def napping() -> list[int]:
    """Return the processes of this machine that take our nap."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().replace(b"\0", b" ").startswith(NAP.encode()):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


async def until(count: int) -> None:
    """Wait until so many take our nap."""
    async with asyncio.timeout(10):
        for _ in iter(lambda: len(napping()) == count, True):
            await asyncio.sleep(0.01)


async def test_it_says_that_it_isolates_nothing(tmp_path: Path) -> None:
    """Every fact is a wall that does not hold."""
    found = await UnconfinedDriver(tmp_path).probe()
    assert (found.driver, found.isolation, found.usable) == ("none", NO_WALLS, True)
    assert found.facts
    assert all(not holds and "not isolated" in why for _, holds, why in found.facts)


async def test_a_closed_sandbox_leaves_nothing(tmp_path: Path) -> None:
    """No file, no process, however it was left, and no descriptor."""
    driver = UnconfinedDriver(tmp_path)
    async with started(driver):
        pass
    before = descriptors()
    async with started(driver) as sandbox:
        await sandbox.write("deep/file", b"x")
        await sandbox.run(Command(shell=f"setsid {NAP} &", background=True))
        assert len(folders(tmp_path)) == 1
        await until(1)
    assert folders(tmp_path) == []
    assert napping() == []
    assert descriptors() <= before


async def test_what_outlives_its_agent_is_ended_all_the_same(tmp_path: Path) -> None:
    """An agent that a command has killed takes nobody along; closing does."""
    async with started(UnconfinedDriver(tmp_path)) as sandbox:
        await sandbox.run(Command(shell=f"setsid {NAP} &", background=True))
        await until(1)
        running = asyncio.create_task(sandbox.run(Command(shell="kill -9 $PPID; sleep 5")))
        with pytest.raises(SandboxDiedError, match="agent ended"):
            await running
    assert napping() == []


async def test_a_killed_service_leaves_no_process_and_its_files_to_reaping(tmp_path: Path) -> None:
    """The agent ends what it started when it hears nothing any more."""
    service = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", KILLED_SERVICE, str(tmp_path), NAP), stdout=subprocess.PIPE
    )
    assert service.stdout is not None
    assert await service.stdout.readline() == b"up\n"
    await until(1)
    service.send_signal(signal.SIGKILL)
    await service.wait()
    await until(0)
    driver = UnconfinedDriver(tmp_path)
    run_id = RunId("run-0000000dead1")
    assert await driver.reap(frozenset({run_id})) == ()
    assert len(folders(tmp_path)) == 1
    assert await driver.reap(frozenset()) == (run_id,)
    assert folders(tmp_path) == []


async def test_reaping_spares_what_a_living_service_holds(tmp_path: Path) -> None:
    """Another service in the same state folder changes nothing."""
    async with started(UnconfinedDriver(tmp_path)) as sandbox:
        assert await UnconfinedDriver(tmp_path).reap(frozenset()) == ()
        assert (await sandbox.run(Command(("true",)))).ok


async def test_secrets_are_refused_and_authorities_trusted(tmp_path: Path) -> None:
    """There is no proxy to put a secret in; the user's authorities are known by variables."""
    driver = UnconfinedDriver(tmp_path)
    secret = Egress((HostRule("h.example"),), (BoundSecret("KEY", "h.example", "s3cret"),))
    with pytest.raises(SandboxUnavailableError, match="secret") as caught:
        await driver.start_bare(new_run_id(), (), Limits(), egress=secret)
    assert "s3cret" not in str(caught.value)
    own = tmp_path / "own.pem"
    own.write_text("-----BEGIN CERTIFICATE-----\nMINE\n-----END CERTIFICATE-----\n")
    trusting = Egress(variables=(("PIP_INDEX_URL", "u"),), ca_files=(str(own),))
    async with started(driver, trusting) as sandbox:
        shown = await sandbox.run(Command(shell='echo $PIP_INDEX_URL; tail -2 "$SSL_CERT_FILE"'))
        assert shown.stdout == b"u\nMINE\n-----END CERTIFICATE-----\n"
    assert folders(tmp_path) == []


async def test_the_tests_of_a_repository_run(tmp_path: Path, sandbox_state: Path) -> None:
    """With the environment's own interpreter and scripts, and the diff is what was changed."""
    repository = buggy_pagination(tmp_path / "repository")
    driver = UnconfinedDriver(sandbox_state)
    base = await driver.prepare(BaseSpec(str(repository), repository.head, requirements=()))
    sandbox = await driver.create(new_run_id(), base, Limits())
    try:
        report = await run_tests(sandbox, "python -m pytest", timeout=60)
        assert (report.failed, len(report.passed)) == ((PAGINATION_TEST,), 2)
        await sandbox.write("pages.py", PAGINATION_FIXED.encode())
        report = await run_tests(sandbox, "pytest", timeout=60)
        assert (report.failed, len(report.passed)) == ((), 3), report.output
        where = await sandbox.run(Command(shell="command -v pytest python; git status --short"))
        assert where.stdout.count(sandbox_state.as_posix().encode()) == 2
        assert where.stdout.endswith(b" M pages.py\n")
        assert [file.path for file in (await sandbox.diff()).files] == ["pages.py"]
    finally:
        await sandbox.close()
