"""Every kind of sandbox that the contract is held against.

A kind is an async context that yields a `Kind`, or skips with the reason where what it needs is
missing. It is opened once for each module of tests.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from kubernetes_asyncio.client import Configuration
from tests.images.debian import require_image

from turnout.core.ids import RunId, new_run_id
from turnout.sandbox.base import BaseSpec, Command, Limits, Sandbox, SandboxDriver
from turnout.sandbox.bubblewrap import BubblewrapDriver
from turnout.sandbox.container.driver import ContainerDriver
from turnout.sandbox.container.options import ContainerOptions
from turnout.sandbox.hosted.driver import HostedDriver
from turnout.sandbox.kubernetes.driver import KubernetesDriver
from turnout.sandbox.kubernetes.options import KubernetesOptions
from turnout.sandbox.unconfined.driver import UnconfinedDriver
from turnout.testing.kubernetes.server import FakeCluster
from turnout.testing.repositories import TinyRepository
from turnout.testing.rooms.machines import LocalMachines
from turnout.testing.sandbox import ScriptedDriver

__all__ = ["KINDS", "LIMITS", "Kind", "empty_commit", "nap", "nappers", "said", "started"]

LIMITS = Limits(disk_bytes=64 << 20)


@dataclass(frozen=True, slots=True)
class Kind:
    """A driver, and what tests have to know of its sandboxes."""

    driver: SandboxDriver
    start: Callable[[RunId, Limits], Awaitable[Sandbox]]
    """Starts a sandbox with an empty workspace, the cheapest way there is."""
    scripted: bool = False
    """Commands are answered, not run."""
    layers: bool = True
    """Its sandboxes can be kept and forked."""


async def usable(driver: SandboxDriver) -> None:
    """Skip where a driver cannot do anything here."""
    found = await driver.probe()
    if not found.usable:
        pytest.skip("; ".join(f"{name}: {why}" for name, holds, why in found.facts if not holds))


def require_programs(*names: str) -> None:
    """Skip where a program is missing."""
    missing = [name for name in names if shutil.which(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


@asynccontextmanager
async def scripted(_: Path) -> AsyncIterator[Kind]:
    """Open the fake."""
    driver = ScriptedDriver()
    base = await driver.prepare(BaseSpec(None))

    async def start(run_id: RunId, limits: Limits) -> Sandbox:
        return await driver.create(run_id, base, limits)

    yield Kind(driver, start, scripted=True)


@asynccontextmanager
async def bubblewrap(state: Path) -> AsyncIterator[Kind]:
    """Open the driver that is the default."""
    driver = BubblewrapDriver(state)
    await usable(driver)

    async def start(run_id: RunId, limits: Limits) -> Sandbox:
        return await driver.start_bare(run_id, (), limits)

    yield Kind(driver, start)


@asynccontextmanager
async def unconfined(state: Path) -> AsyncIterator[Kind]:
    """Open the driver without walls."""
    driver = UnconfinedDriver(state)
    await usable(driver)

    async def start(run_id: RunId, limits: Limits) -> Sandbox:
        return await driver.start_bare(run_id, (), limits)

    yield Kind(driver, start, layers=False)


@asynccontextmanager
async def kubernetes(state: Path) -> AsyncIterator[Kind]:
    """Open the driver of clusters, against an API server whose pods are processes here."""
    require_programs("bwrap", "nsenter")
    async with FakeCluster(state / "node") as cluster:
        options = KubernetesOptions("sandbox-image")
        configuration = Configuration(host=cluster.url)
        driver = KubernetesDriver(state, options, configuration=configuration)

        async def start(run_id: RunId, limits: Limits) -> Sandbox:
            return await driver.start_bare(run_id, (), limits)

        try:
            await usable(driver)
            yield Kind(driver, start)
        finally:
            await driver.close()


@asynccontextmanager
async def container(state: Path) -> AsyncIterator[Kind]:
    """Podman and runc."""
    options = ContainerOptions(
        engine="podman", runtime="runc", image=await asyncio.to_thread(require_image)
    )
    async with ContainerDriver(state, options=options) as driver:
        await usable(driver)

        async def start(run_id: RunId, limits: Limits) -> Sandbox:
            return await driver.start_bare(run_id, (), limits)

        yield Kind(driver, start)


@asynccontextmanager
async def hosted(state: Path) -> AsyncIterator[Kind]:
    """Open the driver of rented machines, against a host whose machines are processes here."""
    require_programs("bwrap", "nsenter")
    driver = HostedDriver(state, LocalMachines(state / "machines"))
    await usable(driver)

    async def start(run_id: RunId, limits: Limits) -> Sandbox:
        return await driver.start_bare(run_id, (), limits)

    yield Kind(driver, start, layers=False)


KINDS: Mapping[str, Callable[[Path], AbstractAsyncContextManager[Kind]]] = {
    "scripted": scripted,
    "bubblewrap": bubblewrap,
    "container": container,
    "none": unconfined,
    "hosted": hosted,
    "kubernetes": kubernetes,
}


def empty_commit(folder: Path) -> BaseSpec:
    """Return what a base of a repository without any file is made of, with pytest alone."""
    repository = TinyRepository(folder)
    return BaseSpec(str(repository), repository.commit("first"), requirements=())


@asynccontextmanager
async def started(kind: Kind, limits: Limits = LIMITS) -> AsyncIterator[Sandbox]:
    """Start a sandbox and end it."""
    sandbox = await kind.start(new_run_id(), limits)
    try:
        yield sandbox
    finally:
        await sandbox.close()


async def said(sandbox: Sandbox, shell: str) -> str:
    """Return what a command printed on both streams."""
    result = await sandbox.run(Command(shell=f"exec 2>&1; {shell}", timeout=20))
    return result.stdout.decode(errors="replace")


def nap(number: int) -> str:
    """Return a command that sleeps long and is known from those of other tests."""
    return f"sleep {number}.{os.getpid()}"


async def nappers(sandbox: Sandbox, number: int, *, at_least: int = 0) -> int:
    """Count the processes that run `nap(number)`, once there are so many."""
    lines = r"for each in /proc/[0-9]*/cmdline; do tr '\0' ' ' <$each; echo; done"
    count = f"found=$({{ {lines}; }} 2>/dev/null | grep -c '^{nap(number)} ')"
    until = f"until {count}; [ $found -ge {at_least} ]; do sleep 0.02; done; echo $found"
    return int(await said(sandbox, until))
