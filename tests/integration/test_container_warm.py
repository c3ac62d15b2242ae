"""Containers that were started ahead, on a real engine."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.containers import SMALL, left_of, names_of, opened, said
from tests.egress import FixedResolver, Site, local, server

from turnout.core.ids import new_run_id
from turnout.sandbox.base import BaseRef, BaseSpec, Command, Egress
from turnout.sandbox.container.driver import ContainerDriver
from turnout.sandbox.egress.gate import EgressServices
from turnout.testing.repositories import TinyRepository


@pytest.fixture
async def driver(own_state: Path) -> AsyncIterator[ContainerDriver]:
    """Open a driver that keeps one container ready for each base."""
    services = EgressServices(FixedResolver())
    async with opened(own_state, warm=1, egress=services) as each:
        yield each


@pytest.fixture
async def base(driver: ContainerDriver, tmp_path: Path) -> BaseRef:
    """Prepare a repository of one file."""
    repository = TinyRepository(tmp_path / "source", {"a.txt": "one\n"})
    return await driver.prepare(BaseSpec(str(repository), repository.head, requirements=()))


async def test_a_warm_container_is_there_at_once(driver: ContainerDriver, base: BaseRef) -> None:
    """Its workspace is fresh, and its first command needs no container to start."""
    await driver.warm_up(base, SMALL)
    run_id = new_run_id()
    begin = time.monotonic()
    sandbox = await driver.create(run_id, base, SMALL)
    found = await said(sandbox, "cat a.txt; git status --short")
    took = time.monotonic() - begin
    assert found == "one"
    assert sandbox.run_id == run_id
    assert took < 0.1
    await sandbox.close()


async def test_no_container_serves_two_runs(
    driver: ContainerDriver, base: BaseRef, own_state: Path
) -> None:
    """The next run gets another, in which nothing is left of the first."""
    uids = set()
    for _ in range(3):
        await driver.warm_up(base, SMALL)
        sandbox = await driver.create(new_run_id(), base, SMALL)
        assert await said(sandbox, "ls; ls /tmp/home; touch here /tmp/home/here") == "a.txt"
        uids.add(await said(sandbox, "id -u"))
        await sandbox.close()
    assert len(uids) == 3


async def test_a_warm_container_reaches_what_its_run_may(
    driver: ContainerDriver, base: BaseRef
) -> None:
    """Nobody served its network before the run was known."""
    fetch = "python3 -c 'import urllib.request as u; print(u.urlopen(\"{}\").read())'"
    async with server(Site()) as port:
        await driver.warm_up(base, SMALL)
        egress = Egress((local(port),))
        sandbox = await driver.create(new_run_id(), base, SMALL, egress=egress)
        assert "b'ok'" in await said(sandbox, fetch.format(f"http://site.test:{port}/"))
        refused = await said(sandbox, fetch.format("http://other.test/"))
        assert "b'ok'" not in refused
        assert [each.allowed for each in sandbox.connections()] == [True, False]
        await sandbox.close()


async def test_a_warm_container_reaches_nothing_by_itself(
    driver: ContainerDriver, base: BaseRef
) -> None:
    """Its socket is closed where the run may reach nothing."""
    await driver.warm_up(base, SMALL)
    sandbox = await driver.create(new_run_id(), base, SMALL)
    connect = "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 3128), 2)'"
    assert "Connection refused" in await said(sandbox, connect)
    assert sandbox.connections() == ()
    await sandbox.close()


async def test_a_warm_container_can_be_kept_and_forked(
    driver: ContainerDriver, base: BaseRef
) -> None:
    """It knows its base as any other does."""
    await driver.warm_up(base, SMALL)
    sandbox = await driver.create(new_run_id(), base, SMALL)
    await sandbox.write("b.txt", b"two\n")
    other = await sandbox.fork(new_run_id())
    assert await said(other, "cat a.txt b.txt") == "one\ntwo"
    assert [change.path for change in (await other.diff()).files] == ["b.txt"]
    await asyncio.gather(sandbox.close(), other.close())


async def test_one_that_died_is_not_given_away(
    driver: ContainerDriver, base: BaseRef, own_state: Path
) -> None:
    """Another is started in its place."""
    await driver.warm_up(base, SMALL)
    (name,) = names_of(own_state)
    killed = await asyncio.create_subprocess_exec(
        "podman", "kill", name, stdout=asyncio.subprocess.DEVNULL
    )
    await killed.wait()
    sandbox = await driver.create(new_run_id(), base, SMALL)
    assert (await sandbox.run(Command(("true",)))).ok
    await sandbox.close()


async def test_none_is_left_when_the_driver_closes(own_state: Path, tmp_path: Path) -> None:
    """Not even one that is only being started."""
    repository = TinyRepository(tmp_path / "source", {"a.txt": "one\n"})
    async with opened(own_state, warm=2) as driver:
        spec = BaseSpec(str(repository), repository.head, requirements=())
        base = await driver.prepare(spec)
        await driver.warm_up(base, SMALL)
        sandbox = await driver.create(new_run_id(), base, SMALL)
        names = names_of(own_state)
        assert len(names) >= 2
        await sandbox.close()
    assert not left_of(names, own_state)
