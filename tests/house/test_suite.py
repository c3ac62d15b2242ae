"""What holds the suite itself: no test waits for ever, and none kills more than one worker."""

import asyncio
import os
import time
from collections.abc import Iterator
from threading import Event
from types import SimpleNamespace

import pytest

from tests.overdue import bounded, unbounded
from tests.scheduling import ByFile


@pytest.fixture
def told() -> Iterator[tuple[int, int]]:
    """Make a pipe that takes what is said of a test that is overdue."""
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


NAME = "tests/test_a.py::test_b"


def test_a_test_that_waits_for_a_thread_is_ended_and_named(told: tuple[int, int]) -> None:
    """With the line that it stands in; the same is told at once, before any report."""
    before = time.monotonic()
    with pytest.raises(pytest.fail.Exception) as failed, bounded(NAME, 0.01, told[1]):
        Event().wait(20)
    assert time.monotonic() - before < 10
    assert f"{NAME} is not done after 0.01 s" in str(failed.value)
    assert f"{__file__}:" in str(failed.value)
    assert os.read(told[0], 1 << 16).decode().strip() == str(failed.value)


def test_a_test_that_awaits_for_ever_is_ended_and_its_tasks_are_named(
    told: tuple[int, int],
) -> None:
    """Each with the whole chain of what it awaits."""

    async def inner() -> None:
        await asyncio.Event().wait()

    async def outer() -> None:
        with bounded(NAME, 0.3, told[1]):
            await asyncio.create_task(inner(), name="the one that hangs")

    with pytest.raises(pytest.fail.Exception) as failed:
        asyncio.run(outer())
    assert "task the one that hangs:" in str(failed.value)
    assert ".inner" in str(failed.value)
    assert "in Event.wait" in str(failed.value)


def test_a_bound_within_a_bound_leaves_the_outer_one_as_it_was(told: tuple[int, int]) -> None:
    """The signal of the inner one is gone, that of the outer one still comes."""

    def both() -> None:
        with bounded("outer", 0.05, told[1]):
            with bounded("inner", 30, told[1]):
                pass
            Event().wait(20)

    with pytest.raises(pytest.fail.Exception, match="outer"):
        both()


def test_what_is_made_once_for_a_machine_stops_the_clock(told: tuple[int, int]) -> None:
    """It goes on afterwards from where it stood."""

    def both() -> None:
        with bounded("outer", 0.05, told[1]):
            with unbounded():
                Event().wait(0.1)
            done.set()
            Event().wait(20)

    done = Event()
    with pytest.raises(pytest.fail.Exception, match="outer"):
        both()
    assert done.is_set()


class Node:
    """A worker, as the scheduler sees it."""

    shutting_down = False

    def __init__(self) -> None:
        self.gateway = SimpleNamespace(id="gw")
        self.sent: list[int] = []

    def send_runtest_some(self, indices: list[int]) -> None:
        """Note what is to run."""
        self.sent += indices

    def shutdown(self) -> None:
        """End when all is done."""
        self.shutting_down = True


def test_a_test_that_killed_its_worker_is_not_given_to_another() -> None:
    """It has failed; the rest of its file is run by the worker that takes the place."""
    tests = ["tests/a.py::one", "tests/a.py::fatal", "tests/a.py::three", "tests/b.py::four"]
    option = SimpleNamespace(loadscopereorder=False)
    schedule = ByFile(SimpleNamespace(option=option, getvalue=lambda _: ["popen", "popen"]))
    dies, lives, follows = Node(), Node(), Node()
    for node in (dies, lives, follows):
        if node is follows:
            schedule.mark_test_complete(dies, 0)
            assert schedule.remove_node(dies) == "tests/a.py::fatal"
        schedule.add_node(node)
        schedule.add_node_collection(node, tests)
        if node is not dies:
            schedule.schedule()
    assert (dies.sent, lives.sent, follows.sent) == ([0, 1, 2], [3], [2])
