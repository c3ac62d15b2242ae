"""What an evaluation ran under, as it is kept."""

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.trials import conditions_of

from turnout.evals.conditions.machine import this_machine
from turnout.evals.conditions.model import (
    TaskSet,
    conditions_json,
    read_conditions,
    set_digest,
)
from turnout.evals.trials.store import Results


def test_conditions_come_back_as_they_were() -> None:
    """Every field of them; what is none is refused."""
    conditions = conditions_of()
    assert read_conditions(conditions_json(conditions)) == conditions
    with pytest.raises(ValidationError):
        read_conditions({"at": "never"})


def test_equal_sets_have_equal_digests() -> None:
    """In whatever order and under whatever name; a row that was changed makes another set."""
    rows = (("a", "1"), ("b", "2"))
    assert TaskSet("x", rows).digest == TaskSet("y", rows[::-1]).digest == set_digest(rows)
    assert set_digest(rows) != set_digest((("a", "1"), ("b", "3")))


def test_conditions_stand_among_the_results_that_were_made_under_them(tmp_path: Path) -> None:
    """One for each command; a program that knows only results finds all of these."""
    path, first = tmp_path / "r.jsonl", conditions_of()
    second = replace(first, repeats=3)
    for each in (first, second):
        results = Results(path)
        with results.writing():
            results.note(each)
        assert results.conditions[-1] == each
    assert Results(path).conditions == (first, second)
    assert Results(path).trials == ()


def test_a_machine_is_told_by_what_bears_on_how_long_things_take(tmp_path: Path) -> None:
    """Its processor has a name where the system tells one."""
    info = tmp_path / "cpuinfo"
    info.write_text("processor\t: 0\nmodel name\t: A Fast One\nmodel name\t: B\n")
    machine = this_machine("bubblewrap", info)
    assert (machine.processor, machine.sandbox) == ("A Fast One", "bubblewrap")
    assert machine.cpus >= 1
    assert machine.memory_mib > 100
    assert this_machine("none", tmp_path / "none").processor != ""
