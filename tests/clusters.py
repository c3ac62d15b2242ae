"""Helpers for tests that start sandboxes in a cluster on this machine."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from kubernetes_asyncio.client import Configuration

from tests.sandboxes import all_commands
from turnout.core.ids import RunId
from turnout.sandbox.base import NO_EGRESS, Command, Egress, Limits
from turnout.sandbox.egress.gate import EgressServices
from turnout.sandbox.kubernetes.driver import KubernetesDriver
from turnout.sandbox.kubernetes.options import KubernetesOptions
from turnout.sandbox.kubernetes.sandbox import PodSandbox
from turnout.testing.kubernetes.server import FakeCluster

PODS = "/api/v1/namespaces/turnout-sandboxes/pods"
OPTIONS = KubernetesOptions("sandbox-image", start_seconds=20)
RUN = RunId("run-0000000000c5")


@dataclass(frozen=True)
class Clustered:
    """A cluster and a driver that works in it."""

    cluster: FakeCluster
    driver: KubernetesDriver

    async def start(self, *, egress: Egress = NO_EGRESS) -> PodSandbox:
        """Start an empty sandbox."""
        return await self.driver.start_bare(RUN, (), Limits(), egress=egress)

    def pods(self) -> list[dict]:
        """Return the pods that there are."""
        return self.cluster.store.list(PODS, {})


@asynccontextmanager
async def clustered(
    folder: Path, *, state: Path | None = None, **options: object
) -> AsyncIterator[Clustered]:
    """Open a cluster; nothing of it may be left when it is closed."""
    if missing := [name for name in ("bwrap", "nsenter") if shutil.which(name) is None]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    state = state or folder / "state"
    async with FakeCluster(folder / "node") as cluster, driving(cluster, state, **options) as made:
        yield made
    assert str(folder) not in all_commands()


@asynccontextmanager
async def driving(
    cluster: FakeCluster,
    state: Path,
    *,
    egress: EgressServices | None = None,
    **options: object,
) -> AsyncIterator[Clustered]:
    """Open another service that uses a cluster."""
    driver = KubernetesDriver(
        state,
        replace(OPTIONS, **options),
        egress=egress,
        configuration=Configuration(host=cluster.url),
    )
    try:
        yield Clustered(cluster, driver)
    finally:
        await driver.close()


async def said(sandbox: PodSandbox, shell: str) -> str:
    """Return what a command printed on both streams."""
    result = await sandbox.run(Command(shell=f"exec 2>&1; {shell}", timeout=20))
    return result.stdout.decode(errors="replace")


async def eventually(holds: Callable[[], bool], seconds: float = 5) -> bool:
    """Look again and again for a time."""
    for _ in range(round(seconds / 0.02)):
        if holds():
            return True
        await asyncio.sleep(0.02)
    return holds()
