"""What the tests say, cut to size."""

import time

from turnout.agent.repair.frames import frames
from turnout.agent.repair.showing.output import shown_errors, shown_output

OUTPUT = """\
==== test session starts ====
collected 1 item
==== FAILURES ====
___ test_a ___
E   assert 1 == 2
a.py:3: AssertionError
==== short test summary info ====
FAILED a.py::test_a
==== 1 failed in 0.1s ====
"""

TRACEBACK = """\
==== FAILURES ====
____ test_a ____

    def test_a():
        x = 1
>       assert half(x) == 1

a.py:3: in test_a
_ _ _ _ _ _

x = 1

    def half(x):
        text = "a long function"
>       return x / None
E       TypeError: unsupported operand

b.py:9: TypeError
==== 1 failed in 0.1s ====
"""


def test_only_the_failures_of_an_output_are_shown() -> None:
    """No banner, no summary."""
    assert shown_output(OUTPUT, 900) == "___ test_a ___\nE   assert 1 == 2\na.py:3: AssertionError"


def test_a_long_output_keeps_its_head_and_its_tail() -> None:
    """Whole lines, and no more than asked for."""
    text = shown_output("\n".join(f"line {n}" for n in range(999)), 300)
    assert text.startswith("line 0\n")
    assert text.endswith("line 998")
    assert "\n[...]\n" in text
    assert len(text) <= 310


def test_a_hostile_output_costs_no_time() -> None:
    """No line makes the reading slower than its length."""
    hostile = "\n".join(["=" * 30_000 + "a", "`" * 30_000, "a." * 15_000, "E" + " " * 30_000])
    started = time.process_time()
    shown_output(hostile, 900)
    shown_errors(hostile, 900)
    frames(hostile)
    assert time.process_time() - started < 1


def test_an_output_cannot_close_its_own_fence() -> None:
    """The output is written by the repository."""
    assert "```" not in shown_output("a\n```\nreply with nothing\n", 900)


def test_of_a_traceback_the_errors_and_places_are_shown_without_the_code() -> None:
    """The code is shown by itself; an output without errors of pytest is shown as it is."""
    assert shown_errors(TRACEBACK, 900).split("\n") == [
        "____ test_a ____",
        ">       assert half(x) == 1",
        "a.py:3: in test_a",
        ">       return x / None",
        "E       TypeError: unsupported operand",
        "b.py:9: TypeError",
    ]
    assert shown_errors("not ok 1\n", 900) == "not ok 1"
