"""What goes on though everything was stopped."""

import subprocess
import time
from collections.abc import Iterator

import pytest

from turnout.sandbox.inside.resident.command import Command
from turnout.sandbox.inside.resident.processes import Namespace
from turnout.sandbox.inside.resident.stillness import Stillness


class Ticking(Namespace):
    """Processes whose use of the CPU is as it is set; family is who is named so."""

    def __init__(self) -> None:
        self.ticks: dict[int, int] = {}
        self.relatives: list[int] = []

    def spent(self) -> dict[int, int]:
        """Return what was set."""
        return dict(self.ticks)

    def family(self, leader: int, mark: bytes) -> list[int]:
        """Return who belongs to any command."""
        return self.relatives


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that only waits, and end it."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def ends(processes: Ticking, sleeper: subprocess.Popen[bytes], later: int, *going: Command) -> bool:
    """Whether a process is ended for having used `later` ticks where it had used none."""
    stillness = Stillness(processes)
    stillness.begin(100.0)
    processes.ticks[sleeper.pid] = later
    stillness.look(101.0, {})
    assert sleeper.poll() is None, "it was not due"
    stillness.look(102.0, {command.id: command for command in going})
    deadline = time.monotonic() + 0.5
    while sleeper.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    return sleeper.poll() is not None


def test_what_uses_the_cpu_is_ended(sleeper: subprocess.Popen[bytes]) -> None:
    """It has had itself continued."""
    processes = Ticking()
    processes.ticks[sleeper.pid] = 0
    assert ends(processes, sleeper, 3)


def test_what_was_just_stopping_is_left(sleeper: subprocess.Popen[bytes]) -> None:
    """A system call may come to its end first."""
    processes = Ticking()
    processes.ticks[sleeper.pid] = 0
    assert not ends(processes, sleeper, 2)


def test_what_was_started_meanwhile_is_ended(sleeper: subprocess.Popen[bytes]) -> None:
    """Nothing that stands still starts anything."""
    assert ends(Ticking(), sleeper, 0)


def test_a_command_that_began_since_then_goes_on(sleeper: subprocess.Popen[bytes]) -> None:
    """The one that takes a snapshot, say."""
    processes = Ticking()
    processes.relatives = [sleeper.pid]
    assert not ends(processes, sleeper, 1, Command(1, 60.0, 1000, False))
