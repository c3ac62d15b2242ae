"""The short calls to an engine."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.engines import DOCKER, PODMAN, FakeEngine


@pytest.fixture
def fake(tmp_path: Path) -> FakeEngine:
    """Return a program that answers nothing yet."""
    return FakeEngine(tmp_path)


async def test_a_container_is_ended_and_removed_at_once(fake: FakeEngine) -> None:
    """With its volume, where it has one."""
    fake.answer("rm").answer("volume rm")
    podman = replace(PODMAN, program=str(fake.program))
    assert await podman.remove("turnout-1", volume=False)
    assert fake.asked == [["rm", "--force", "--volumes", "--time=0", "turnout-1"]]
    docker = replace(DOCKER, program=str(fake.program))
    assert await docker.remove("turnout-1", volume=True)
    assert fake.asked[1:] == [
        ["rm", "--force", "--volumes", "turnout-1"],
        ["volume", "rm", "--force", "turnout-1"],
    ]


@pytest.mark.parametrize(
    "said",
    [
        "Error response from daemon: No such container: turnout-1",
        'Error: no container with name or ID "turnout-1" found: no such container',
        "removal of container turnout-1 is already in progress",
    ],
)
async def test_what_is_gone_already_is_gone(fake: FakeEngine, said: str) -> None:
    """Containers remove themselves when they end."""
    fake.answer("rm", stderr=said, code=1)
    assert await replace(DOCKER, program=str(fake.program)).remove("turnout-1", volume=False)


async def test_what_cannot_be_removed_is_not_gone(fake: FakeEngine) -> None:
    """It is tried again at the next start of the service."""
    fake.answer("rm", stderr="device or resource busy", code=1)
    assert not await replace(DOCKER, program=str(fake.program)).remove("turnout-1", volume=False)


async def test_containers_are_found_by_their_label(fake: FakeEngine) -> None:
    """Those that do not run any more, too."""
    fake.answer("ps --all", "turnout-1\nturnout-2\n")
    found = await replace(PODMAN, program=str(fake.program)).names("turnout.state=x")
    assert found == {"turnout-1", "turnout-2"}
    assert "label=turnout.state=x" in fake.asked[0]
