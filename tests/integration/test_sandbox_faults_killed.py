"""Services that are killed while they work with sandboxes: nothing of them is left."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.images.debian import require_image
from tests.integration.faults import Bench, groups, mounted, registered, three_hundred_files
from tests.integration.killed_service import RUN

from turnout.sandbox.base import BaseSpec, Command
from turnout.sandbox.bubblewrap import BubblewrapDriver
from turnout.sandbox.container.driver import ContainerDriver
from turnout.sandbox.container.options import ContainerOptions
from turnout.sandbox.workspace.folders import short_hash
from turnout.testing.repositories import TinyRepository

pytestmark = pytest.mark.chaos

ROOT = Path(__file__).parents[2]


@pytest.fixture
def repository(tmp_path: Path) -> TinyRepository:
    """Make a repository."""
    return three_hundred_files(tmp_path / "source")


@pytest.fixture
async def bench(own_state: Path, repository: TinyRepository) -> Bench:
    """Prepare it."""
    return await Bench.made(BubblewrapDriver(own_state), repository, own_state)


async def killed(
    stage: str, state: Path, repository: TinyRepository, *seconds: float, kind: str = "bubblewrap"
) -> None:
    """Kill services at some points of a stage; all processes of each are gone two seconds later."""
    service = (stage, kind, str(state), str(repository), repository.head)
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "tests.integration.killed_service", *service, *map(str, seconds)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == len(seconds), done.stderr
    for told in lines:
        assert told["ready"] == "ready", done.stderr
        assert told["gone"], told["left"]


def containers(state: Path) -> str:
    """Return the names of containers that have to do with a state folder."""
    listed = ["podman", "ps", "--all", "--format", "{{.Names}} {{.Labels}} {{.Mounts}}"]
    done = subprocess.run(listed, capture_output=True, text=True, check=True, timeout=30)
    label = f"turnout.state:{short_hash(str((state / 'containers').resolve()))}"
    lines = done.stdout.splitlines()
    return "\n".join(line for line in lines if label in line or str(state) in line)


async def reaped(state: Path) -> None:
    """Reap what a killed service left; no name of it may remain anywhere."""
    left = groups(state)
    await BubblewrapDriver(state).reap(frozenset())
    assert not registered(state)
    assert not [group for group in left if group.exists()]
    assert not mounted(state)


@pytest.mark.parametrize("stage", ["exec", "create"])
async def test_a_service_killed_with_containers_leaves_none(
    own_state: Path, repository: TinyRepository, stage: str
) -> None:
    """Their processes end as fast, and another service removes what the engine keeps of them."""
    image = await asyncio.to_thread(require_image)
    await killed(stage, own_state, repository, 0.0, 0.1, 0.3, kind="container")
    options = ContainerOptions(engine="podman", image=image)
    async with ContainerDriver(own_state, options=options) as driver:
        await driver.reap(frozenset())
    assert not await asyncio.to_thread(containers, own_state)
    assert not mounted(own_state)


@pytest.mark.parametrize("stage", ["exec", "diff", "snapshot"])
async def test_a_service_killed_while_a_sandbox_works_leaves_nothing(
    bench: Bench, repository: TinyRepository, stage: str
) -> None:
    """Processes end within two seconds; groups and entries go when another service reaps."""
    await killed(stage, bench.state, repository, 0.0, 0.05, 0.2)
    names = registered(bench.state)
    assert names
    assert RUN in await bench.driver.reap(frozenset())
    await reaped(bench.state)


async def test_a_service_killed_while_it_starts_sandboxes_leaves_nothing(
    bench: Bench, repository: TinyRepository
) -> None:
    """Whatever of a sandbox was there already: process, group, entry."""
    await killed("create", bench.state, repository, 0.0, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04)
    await reaped(bench.state)
    async with bench.opened() as sandbox:
        assert (await sandbox.read("d1/f1.txt")).data == b"1\n"


async def test_a_service_killed_while_it_prepares_harms_no_later_one(
    tmp_path: Path, repository: TinyRepository
) -> None:
    """What was half made is not taken for whole, and no lock is left."""
    state = tmp_path / "state"
    await killed("prepare", state, repository, 0.1, 0.5, 1.2, 2.0)
    await reaped(state)
    driver = BubblewrapDriver(state)
    async with asyncio.timeout(90):
        base = await driver.prepare(BaseSpec(str(repository), repository.head, requirements=()))
    async with Bench(driver, base, state).opened() as sandbox:
        assert (await sandbox.run(Command(("python", "-m", "pytest", "--version")))).ok
        assert not await sandbox.diff()


LOCKS = ("config.lock", "HEAD.lock", "packed-refs.lock", "shallow.lock", "refs/bases/{0}.lock")
"""What git leaves in a repository of ours when it is killed while it writes there."""


@pytest.mark.parametrize("lock", LOCKS)
async def test_a_git_killed_while_it_kept_a_mirror_harms_no_later_one(
    bench: Bench, repository: TinyRepository, lock: str
) -> None:
    """Its lock files say nothing, for every writer holds the lock of the service."""
    commit = repository.commit("next", {"next.txt": f"{lock}\n"})
    for mirror in (bench.state / "mirrors").glob("*.git"):
        path = mirror / lock.format(commit)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    base = await bench.driver.prepare(BaseSpec(str(repository), commit, requirements=()))
    async with Bench(bench.driver, base, bench.state).opened() as sandbox:
        assert (await sandbox.read("next.txt")).data == f"{lock}\n".encode()
