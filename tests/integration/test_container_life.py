"""How containers begin and end, and what is left of them: nothing."""

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.containers import RUN, SMALL, left_of, names_of, opened, podman, said
from tests.images.debian import image_name

from turnout.core.ids import RunId, new_run_id
from turnout.errors import SandboxDiedError
from turnout.sandbox.base import Command
from turnout.sandbox.container.driver import ContainerDriver

pytestmark = pytest.mark.chaos

SERVICE = """
import asyncio, sys
from pathlib import Path
from turnout.core.ids import RunId
from turnout.sandbox.base import Command, Limits
from turnout.sandbox.container.driver import ContainerDriver
from turnout.sandbox.container.options import ContainerOptions

async def main():
    piped = sys.argv[3] == "piped"
    options = ContainerOptions(engine="podman", runtime="runc", image=sys.argv[2], piped=piped)
    driver = ContainerDriver(Path(sys.argv[1]), options=options)
    sandbox = await driver.start_bare(RunId("run-0000000dead0"), (), Limits())
    async for _ in sandbox.exec(Command(shell="echo $$; echo up; exec sleep 1000")):
        print("up", flush=True)

asyncio.run(main())
"""
WAYS = pytest.mark.parametrize("piped", [False, True], ids=["direct", "piped"])


@pytest.fixture
async def driver(own_state: Path) -> AsyncIterator[ContainerDriver]:
    """Open a driver on a state folder of its own."""
    async with opened(own_state) as each:
        yield each


def kill_service(state: Path, way: str) -> list[str]:
    """Kill a service that has a container; return what still runs of that two seconds later."""
    argv = [sys.executable, "-c", SERVICE, str(state), image_name(), way]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as service:
        assert service.stdout is not None
        assert service.stdout.readline() == b"up\n"
        (name,) = names_of(state)
        first = podman("inspect", "--format={{.State.Pid}}", name).strip()
        children = Path("/proc", first, "task", first, "children").read_text().split()
        assert children
        service.kill()
    processes = [Path("/proc", pid) for pid in (first, *children)]
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline and any(each.exists() for each in processes):
        time.sleep(0.01)
    return [each.name for each in processes if each.exists()]


@WAYS
async def test_a_closed_container_leaves_nothing(own_state: Path, piped: bool) -> None:
    """Neither itself nor mounts, folders and entries of it."""
    async with opened(own_state, piped=piped) as driver:
        sandbox = await driver.start_bare(RUN, (), SMALL)
        names = names_of(own_state)
        assert len(names) == 1
        assert names <= left_of(names, own_state)
        assert await said(sandbox, "sleep 1000 & echo started") == "started"
        await sandbox.close()
        assert not left_of(names, own_state)


async def test_many_at_once_have_nothing_in_common(
    driver: ContainerDriver, own_state: Path
) -> None:
    """Neither files nor uids."""
    starts = [driver.start_bare(new_run_id(), (), SMALL) for _ in range(6)]
    sandboxes = await asyncio.gather(*starts)
    names = names_of(own_state)
    await asyncio.gather(*(each.write("mine", b"%d" % n) for n, each in enumerate(sandboxes)))
    seen = await asyncio.gather(*(said(each, "cat mine; echo; id -u") for each in sandboxes))
    await asyncio.gather(*(each.close() for each in sandboxes))
    assert [each.split()[0] for each in seen] == [str(n) for n in range(6)]
    assert len({each.split()[1] for each in seen}) == 6
    assert not left_of(names, own_state)


@WAYS
async def test_a_killed_service_leaves_no_process(own_state: Path, piped: bool) -> None:
    """Its containers end because their channels do; what is on disk is removed by `reap`."""
    async with opened(own_state, piped=piped) as driver:
        way = "piped" if piped else "direct"
        assert not await asyncio.to_thread(kill_service, own_state, way)
        names = names_of(own_state)
        assert names
        assert await driver.reap(frozenset({RunId("run-0000000dead0")})) == ()
        assert await driver.reap(frozenset()) == ("run-0000000dead0",)
        assert not left_of(names, own_state)
        assert await driver.reap(frozenset()) == ()


async def test_a_run_that_goes_on_is_not_reaped(driver: ContainerDriver, own_state: Path) -> None:
    """Whose service lives is not an orphan, known or not."""
    sandbox = await driver.start_bare(RUN, (), SMALL)
    assert await driver.reap(frozenset()) == ()
    assert await said(sandbox, "echo alive") == "alive"
    await sandbox.close()


async def test_a_container_that_nobody_registered_is_reaped(
    driver: ContainerDriver, own_state: Path
) -> None:
    """It bears the label of the state folder, which no other folder's has."""
    sandbox = await driver.start_bare(RUN, (), SMALL)
    (name,) = names_of(own_state)
    (own_state / "containers" / "running" / f"{name}.json").unlink()
    await driver.reap(frozenset())
    with pytest.raises(SandboxDiedError):
        await sandbox.run(Command(("sleep", "10")))
    await sandbox.close()
    assert not left_of({name}, own_state)


async def test_a_container_that_is_removed_is_gone(
    driver: ContainerDriver, own_state: Path
) -> None:
    """Whoever waits for it learns that, and it can be closed."""
    sandbox = await driver.start_bare(RUN, (), SMALL)
    names = names_of(own_state)
    running = asyncio.create_task(sandbox.run(Command(("sleep", "1000"))))
    await said(sandbox, "true")
    await asyncio.to_thread(podman, "rm", "--force", "--time=0", *names)
    with pytest.raises(SandboxDiedError):
        await running
    await sandbox.close()
    assert not left_of(names, own_state)


@pytest.mark.parametrize("seconds", [0.0, 0.02, 0.06, 0.15])
async def test_a_start_that_is_given_up_leaves_nothing(
    driver: ContainerDriver, own_state: Path, seconds: float
) -> None:
    """However far it had come."""
    starting = asyncio.create_task(driver.start_bare(RUN, (), SMALL))
    await asyncio.sleep(seconds)
    names = names_of(own_state)
    starting.cancel()
    await asyncio.wait([starting])
    if not starting.cancelled():
        await starting.result().close()
    assert not left_of(names, own_state)


async def test_an_image_that_is_gone_says_so(driver: ContainerDriver, tmp_path: Path) -> None:
    """Nothing is fetched in its place."""
    assert (await driver.probe()).usable
    async with ContainerDriver(tmp_path) as other:
        found = await other.probe()
    assert not found.usable
    assert "turnout-sandbox" in found.facts[0][2]
