"""What check-ups are made of is itself sound."""

import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.evals.checkup.models import SOLUTIONS

from turnout.evals.checkup.exercises import EXERCISES, Exercise
from turnout.evals.checkup.notes import LINKS, make_notes
from turnout.evals.checkup.run import expected_usage, sessions

NAMES = [exercise.name for exercise in EXERCISES]


def write(root: Path, exercise: Exercise, *, solved: bool) -> None:
    """Write an exercise's files, with the right one where it is solved."""
    files = {**exercise.files, **({exercise.path: SOLUTIONS[exercise.name]} if solved else {})}
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder to import from, of which nothing stays imported."""
    monkeypatch.syspath_prepend(str(tmp_path))
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        del sys.modules[name]


def passes(path: Path) -> bool:
    """Run the tests of a file; say whether all pass."""
    tests = [test for name, test in runpy.run_path(str(path)).items() if name.startswith("test_")]
    assert tests
    try:
        for test in tests:
            test()
    except (AssertionError, LookupError, NotImplementedError, ValueError):
        return False
    return True


@pytest.mark.parametrize("exercise", EXERCISES, ids=NAMES)
@pytest.mark.parametrize("solved", [False, True])
def test_an_exercise_can_be_solved_and_is_not_yet(
    place: Path, exercise: Exercise, solved: bool
) -> None:
    """Both the test that the model sees and those that grade fail before and pass after."""
    write(place, exercise, solved=solved)
    shown = next(name for name in exercise.files if name.startswith("tests/"))
    hidden = place / "tests" / "test_hidden.py"
    hidden.write_text(exercise.hidden)
    assert passes(place / shown) == solved
    assert passes(hidden) == solved


def test_every_exercise_has_something_beside_it_to_leave_alone() -> None:
    """And is another item of an evaluation than the others."""
    for exercise in EXERCISES:
        assert exercise.path in exercise.files
        assert [name for name in exercise.files if name != exercise.path and "test" not in name]
        assert exercise.hidden not in exercise.files.values()
    assert len({exercise.instance().digest for exercise in EXERCISES}) == len(EXERCISES)


def test_notes_lead_from_one_to_the_next_and_none_can_be_guessed() -> None:
    """Another seed makes others; each stamp and phrase is in one note alone."""
    notes = make_notes(7)
    path = notes.prompt.split("note ")[1].split(". ")[0]
    read = []
    while path:
        text = notes.files[path]
        stamp, _, then = text.splitlines()
        read.append(stamp)
        path = then.removeprefix("Read next: ") if then.startswith("Read next") else ""
    assert tuple(read) == notes.stamps
    assert len(read) == LINKS > 40
    everything = "".join(notes.files.values())
    assert everything.count(notes.words) == 1
    assert all(everything.count(stamp) == 1 for stamp in notes.stamps)
    assert notes == make_notes(7)
    assert not set(notes.files) & set(make_notes(8).files) - {"README.md"}


def test_what_it_will_take_is_known_before() -> None:
    """More where more is tried."""
    small, all_of_it = expected_usage(sessions(links=5, exercises=1)), expected_usage(sessions())
    assert 0 < small.input_tokens < all_of_it.input_tokens < 600_000
    assert 0 < small.output_tokens < all_of_it.output_tokens
