"""How far an evaluation is."""

from datetime import UTC, datetime

from tests.unit.evals.trials.parts import AUTO, MODEL, trial_of, unit_of

from turnout.cli.eval.running.live import board_lines, trial_line
from turnout.core.events import Entry, StepStarted, ToolCallIntended
from turnout.core.ids import RunId, ToolCallId
from turnout.core.money import Micros
from turnout.core.tools import ToolCall
from turnout.evals.trials.board import Board
from turnout.testing.clock import FrozenClock

UNITS = [unit_of(arm=arm, attempt=n) for n in (1, 2) for arm in (AUTO, MODEL)]


def board_of(clock):
    """Return a board on which one of four units was done before."""
    board = Board(clock, 2)
    known = trial_of(UNITS[0], grade="resolved", cost_micros=Micros(1_500_000))
    board.plan(UNITS, [known])
    return board


def test_an_arm_a_line_and_a_unit_a_line():
    """With rate, interval, spend, what is left, and what is worked on."""
    clock = FrozenClock()
    board = board_of(clock)
    running = board.begin(UNITS[1])
    for event in (
        StepStarted(3, "act", "latency"),
        ToolCallIntended(3, ToolCall(ToolCallId("c"), "run_tests", "{}")),
    ):
        running.see(Entry(RunId("run-1"), 1, datetime(2026, 1, 1, tzinfo=UTC), event))
    clock.advance(75.0)
    lines = list(board_lines(board, clock.monotonic()))
    assert lines == [
        "auto     1/2 done, 1 resolved (21% to 100%), $1.50",
        "model:m  0/2 done, 0 resolved, $0.00",
        "  one · model:m · step 3 · run_tests · 1 min 15 s",
    ]


def test_what_is_left_is_told_once_something_has_ended():
    """By the pace of this process, whatever was done before."""
    clock = FrozenClock()
    board = board_of(clock)
    assert board.seconds_left is None
    board.begin(UNITS[1])
    clock.advance(60.0)
    board.leave(UNITS[1])
    board.end(trial_of(UNITS[1], grade="no_patch"))
    assert board.seconds_left == 120.0
    assert (board.done, board.total) == (2, 4)
    assert "about 2 min 00 s left" in list(board_lines(board, clock.monotonic()))


def test_what_became_of_a_unit_is_a_line():
    """It names the arm where there are several, and the try where it is not the first."""
    board = board_of(FrozenClock())
    trial = trial_of(UNITS[3], detail="1 of 2 do not pass.", steps=4, seconds=12.3)
    assert trial_line(trial, board) == (
        "[1/4] one, model:m, try 2: unresolved (answered, 4 steps, 12 s): 1 of 2 do not pass."
    )


def test_a_cost_that_is_not_known_is_not_nothing():
    """Neither where all of it is unknown nor where some is."""
    board = board_of(FrozenClock())
    board.end(trial_of(UNITS[2]))
    board.end(trial_of(UNITS[1]))
    first, second = list(board_lines(board, 0.0))[:2]
    assert first.endswith("$1.50 and more")
    assert second.endswith("unpriced")
