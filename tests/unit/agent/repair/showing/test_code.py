"""The code of a prompt, cut to size."""

from turnout.agent.repair.grafting.excerpt import Region
from turnout.agent.repair.grafting.matching import Target
from turnout.agent.repair.grafting.source import Module, parse_module
from turnout.agent.repair.showing.code import (
    shown_code,
    shown_definition,
    shown_lines,
    shown_tests,
    without_body,
)
from turnout.agent.repair.suspects import Suspects

LONG = "import os\n\n\nclass A:\n    x = 1\n\n    def f(self, a):\n        return a\n\n" + "".join(
    f"    def g{n}(self):\n        return {n}{' + 1' * 20}\n\n" for n in range(99)
)


def parsed(path: str, text: str) -> Module:
    """Parse a file given as text."""
    module = parse_module(path, text.encode())
    assert module is not None
    return module


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


NESTED = '''\
class A:
    def f(self):
        """Say it.

        At length, with many words that no prompt needs, because the tests say what is wanted, and
        because a small model would write all of them again, word by word, in every reply of its,
        which takes its time and ours
        It goes on.
        """
        def g():
            return 1
        return g()
'''


def test_one_definition_is_shown_below_the_head_of_its_class() -> None:
    """Of a long docstring only the first paragraph: the reply would repeat it."""
    suspects = Suspects((parsed("a.py", NESTED),), (Target("a.py", "A.f"),), 5)
    text = shown_definition(suspects, Target("a.py", "A.f"), {})
    assert text.startswith(
        '# file: a.py\n```python\nclass A:\n    def f(self):\n        """Say it."""\n'
    )
    assert "At length" not in text
    assert text.endswith("        return g()\n```")


def test_lines_are_shown_at_the_left_margin_with_their_place() -> None:
    """The reply is laid out as the file is."""
    suspects = Suspects((parsed("a.py", NESTED),), (Target("a.py", "A.f"),), 5)
    text = shown_lines(suspects, Target("a.py", "A.f"), Region(10, 11), {11: "Bad"})
    code = "def g():\n    return 1  # <-- Bad"
    assert text == f"# file: a.py, lines 10 to 11, in `A.f`\n```python\n{code}\n```"


def test_a_body_can_be_left_out_though_a_function_in_it_is_suspected() -> None:
    """What is left out takes its own suspects along."""
    module = parsed("a.py", NESTED + "\n\nx = 1\n" * 1_000)
    targets = (Target("a.py", "A.f"), Target("a.py", "A.f.g"))
    gap = without_body(Suspects((module,), targets, 5), targets[0])
    assert gap is not None
    assert "        ...\n" in shown_code(gap, {}, 4_000)


def test_of_a_long_test_the_lines_in_question_are_shown() -> None:
    """A test file that fits is shown whole; of a long one what fails, around the failure."""
    short = "def test_a():\n    assert 1\n"
    assert "test_a" in shown_tests([parsed("t.py", short)], [], {}, 900)
    rows = "".join(f"    assert {number}\n" for number in range(500))
    module = parsed("t.py", f"def test_b():\n{rows}\n\ndef test_c():\n    pass\n")
    text = shown_tests([module], ["t.py::test_b"], {"t.py": (300,)}, 400)
    assert "assert 298\n" in text
    assert "assert 9\n" not in text
    assert "test_c" not in text
    assert len(text) < 500


def test_of_a_conftest_the_fixtures_that_failing_tests_have_are_shown() -> None:
    """Reading what no failing test uses costs a small model seconds, and leads it astray."""
    conftest = (
        "import pytest\n\n\n@pytest.fixture\ndef user(name):\n    return name\n\n\n"
        "@pytest.fixture\ndef name():\n    return 'n'\n\n\n"
        "@pytest.fixture\ndef blog():\n    return 'b'\n\n\n"
        "@pytest.fixture(autouse=True)\ndef clean():\n    pass\n"
    )
    tests = [parsed("t.py", "def test_a(user):\n    assert 0\n"), parsed("conftest.py", conftest)]
    text = shown_tests(tests, ["t.py::test_a"], {}, 4_000)
    assert [name for name in ("user", "name", "blog", "clean") if f"def {name}(" in text] == [
        "user",
        "name",
        "clean",
    ]
    plain = [parsed("t.py", "def test_a():\n    assert 0\n"), parsed("conftest.py", "x = 1\n")]
    assert "conftest" not in shown_tests(plain, ["t.py::test_a"], {}, 4_000)
