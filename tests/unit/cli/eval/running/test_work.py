"""Which instances of a file are run, and how that is shown."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.evals.trials.parts import INSTANCE, trial_of, unit_of

from turnout.cli.eval.running.live import watch_on
from turnout.cli.eval.running.work import Chosen, chosen_of
from turnout.errors import UsageError
from turnout.evals.trials.board import Board
from turnout.testing.clock import FrozenClock

SET = [replace(INSTANCE, instance_id=name) for name in "abc"]
NEEDY = [*SET, replace(INSTANCE, instance_id="d", spec="needs-tests")]


def names(found, *, only=(), limit=None, mode="hidden"):
    """Return what is run, and what was said."""
    selected = chosen_of(found, Chosen(Path("tasks.jsonl"), None, only, limit), mode)
    return [[each.instance_id for each in part] for part in (selected.run, selected.needy)]


def test_the_first_of_those_that_are_named_are_run():
    """All of them by default."""
    assert names(SET) == [["a", "b", "c"], []]
    assert names(SET, only=("c", "b")) == [["b", "c"], []]
    assert names(SET, only=("c", "b"), limit=1) == [["b"], []]


def test_what_needs_its_tests_is_left_out_where_they_are_hidden():
    """It is told; where it was named, or nothing else is there, it is refused."""
    assert names(NEEDY, limit=9) == [["a", "b", "c"], ["d"]]
    assert names(NEEDY, mode="visible") == [["a", "b", "c", "d"], []]
    for found, only in ((NEEDY, ("d",)), (NEEDY[3:], ())):
        with pytest.raises(UsageError, match="without seeing its tests"):
            names(found, only=only)


def test_an_instance_that_is_not_there_is_wrong_usage():
    """Some that are there are named."""
    with pytest.raises(UsageError, match="no instance 'z'") as caught:
        names(SET, only=("a", "z"))
    assert "a, b, c" in caught.value.mend


class Terminal(io.StringIO):
    """A stream that may be one."""

    def __init__(self, *, tty):
        super().__init__()
        self.tty = tty

    def isatty(self):
        """Say whether it is."""
        return self.tty


@pytest.mark.parametrize("tty", [True, False])
def test_what_has_ended_stands_and_a_terminal_has_a_table_below_it(tty):
    """Elsewhere the table comes a line at a time, and not more often than every minute."""
    clock, stream = FrozenClock(), Terminal(tty=tty)
    board = Board(clock, 1)
    units = [unit_of(attempt=n) for n in (1, 2, 3)]
    board.plan(units, [])
    watch = watch_on(stream, board, clock, colour=False)
    try:
        for unit in units[:2]:
            board.begin(unit)
            clock.advance(40.0)
            board.leave(unit)
            trial = trial_of(unit, grade="resolved", detail="evil \x1b[2J")
            board.end(trial)
            watch.ended(trial)
        watch.say("Stopping.")
    finally:
        watch.close()
    said = stream.getvalue()
    assert "[1/3] one: resolved (answered, 0 steps, 0 s)" in said
    assert "[2/3] one, try 2: resolved" in said
    assert "Stopping." in said
    assert "\x1b[2J" not in said
    assert ("2/3 done, 2 resolved" in said) or tty
    assert said.count("about 40 s left") == 1 or tty
