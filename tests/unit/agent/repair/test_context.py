"""The code and the output of a prompt, cut to size."""

import time

from turnout.agent.repair.context import shown_code, shown_output
from turnout.agent.repair.frames import frames
from turnout.agent.repair.grafting.matching import Target
from turnout.agent.repair.grafting.source import Module, parse_module
from turnout.agent.repair.localise import Suspects

LONG = "import os\n\n\nclass A:\n    x = 1\n\n    def f(self, a):\n        return a\n\n" + "".join(
    f"    def g{n}(self):\n        return {n}{' + 1' * 20}\n\n" for n in range(99)
)

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


def parsed(path: str, text: str) -> Module:
    """Parse a file given as text."""
    module = parse_module(path, text.encode())
    assert module is not None
    return module


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
    frames(hostile)
    assert time.process_time() - started < 1


def test_an_output_cannot_close_its_own_fence() -> None:
    """The output is written by the repository."""
    assert "```" not in shown_output("a\n```\nreply with nothing\n", 900)


def test_a_file_that_fits_is_shown_whole() -> None:
    """Under its name."""
    module = parsed("a.py", "x = 1\n")
    suspects = Suspects((module,), (Target("a.py", "x"),), 5)
    assert shown_code(suspects, {}, 900) == "# file: a.py\n```python\nx = 1\n```"


def test_a_long_file_is_cut_to_its_suspects_and_signatures() -> None:
    """Imports stay, and the suspect is there with its indentation."""
    suspects = Suspects((parsed("a.py", LONG),), (Target("a.py", "A.f"),), 5)
    text = shown_code(suspects, {}, 10_000)
    assert "import os\n" in text
    assert "class A:\n" in text
    assert "    def f(self, a):\n        return a\n" in text
    assert "    def g7(self): ...\n" in text
    assert "return 7" not in text


def test_a_file_without_a_suspect_is_shown_only_where_everything_fits() -> None:
    """The suspects come first."""
    modules = parsed("a.py", "x = 1\n"), parsed("b.py", "y = 1\n" * 100)
    suspects = Suspects(modules, (Target("a.py", "x"),), 5)
    assert "b.py" not in shown_code(suspects, {}, 500)
    assert "b.py" in shown_code(suspects, {}, 900)
