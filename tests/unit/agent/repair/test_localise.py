"""From a failing test to the code that it fails on."""

from textwrap import dedent

import pytest

from turnout.agent.repair.frames import Frame, frames
from turnout.agent.repair.grafting.excerpt import Region
from turnout.agent.repair.grafting.matching import Target
from turnout.agent.repair.grafting.source import Module, parse_module
from turnout.agent.repair.localise import localise
from turnout.agent.repair.reading import Sources
from turnout.agent.repair.suspects import Suspects
from turnout.agent.repair.tracing.coverage import Coverage
from turnout.core.runs import TestReport

CODE = """\
    def helper(x):
        return x

    def broken(x):
        return helper(x)

    def other(x):
        return x

    class Box:
        def put(self, x):
            return other(x)

        def get(self):
            return 1
"""

TEST = """\
    from code import Box, broken

    def test_broken():
        assert broken(1) == 2

    def test_box():
        Box().get()
"""


def parsed(path: str, text: str) -> Module:
    """Parse a file given as text."""
    module = parse_module(path, dedent(text).encode())
    assert module is not None
    return module


def failing(*failed: str, output: str = "") -> TestReport:
    """Return a report of failed tests."""
    return TestReport("pytest", 1, (), failed, 0.1, output)


def suspects(*modules: Module, prompt: str = "", report: TestReport) -> Suspects:
    """Localise in `modules` with the one test file."""
    return localise(Sources(modules, (parsed("test_code.py", TEST),), {}), prompt, report)


def test_what_the_failing_test_calls_comes_first() -> None:
    """What that calls comes next, and what only other tests call does not come."""
    found = suspects(parsed("code.py", CODE), report=failing("test_code.py::test_broken[1-a::b]"))
    assert found.targets == (Target("code.py", "broken"), Target("code.py", "helper"))


def test_the_deepest_frame_of_a_traceback_weighs_most() -> None:
    """The line belongs to the innermost function around it."""
    report = failing("test_code.py::test_broken", output="code.py:5: in broken\ncode.py:2: E")
    found = suspects(parsed("code.py", CODE), report=report)
    assert found.targets[0] == Target("code.py", "helper")


def test_a_method_of_a_class_that_the_test_makes_is_suspected() -> None:
    """The method that the test names comes before the others."""
    found = suspects(parsed("code.py", CODE), report=failing("test_code.py::test_box"))
    assert found.targets[0] == Target("code.py", "Box.get")
    assert Target("code.py", "Box.put") in found.targets
    assert Target("code.py", "Box") not in found.targets


def test_what_passing_tests_use_too_is_suspected_less() -> None:
    """A helper of every test is seldom the fault."""
    code = parsed("code.py", "def check(x):\n    pass\n\ndef rare(x):\n    pass\n")
    names = ("a", "b", "c")
    test = "from code import check, rare\n\ndef test_x():\n    check(rare(1))\n" + "".join(
        f"\ndef test_{name}():\n    check(1)\n" for name in names
    )
    sources = Sources((code,), (parsed("test_code.py", test),), {})
    found = localise(sources, "", failing("test_code.py::test_x"))
    assert found.targets == (Target("code.py", "rare"), Target("code.py", "check"))


def test_a_name_in_the_report_is_suspected() -> None:
    """People name what is wrong."""
    report = failing("test_code.py::test_broken")
    found = suspects(parsed("code.py", CODE), prompt="`other` is wrong", report=report)
    assert Target("code.py", "other") in found.targets


def test_the_file_of_the_first_suspect_comes_first() -> None:
    """Files without any suspect come last and stay in the list."""
    empty = parsed("empty.py", "x = 1\n")
    found = suspects(empty, parsed("code.py", CODE), report=failing("test_code.py::test_broken"))
    assert [module.path for module in found.modules] == ["code.py", "empty.py"]
    assert found.of(empty) == ()


def test_without_test_ids_the_whole_test_file_counts() -> None:
    """A runner of another kind reports none."""
    found = suspects(parsed("code.py", CODE), report=failing())
    assert {"broken", "Box.get"} <= {target.name for target in found.targets}


def test_frames_are_read_in_the_forms_of_pytest_and_of_python() -> None:
    """Paths are relative to the workspace; those outside of it are left out."""
    output = dedent("""\
        src/a.py:12: in f
        E     File "/repo/src/b.py", line 3
        /usr/lib/python3/c.py:1: in g
        ../d.py:4: KeyError
        a b.py:5: no
    """)
    assert frames(output) == (Frame("src/a.py", 12), Frame("src/b.py", 3))


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("    at add (/repo/src/add.js:3:11)", Frame("src/add.js", 3)),
        ("    at file:///repo/src/add.mjs:3:11", Frame("src/add.mjs", 3)),
        ("    at async Promise.all (node:internal/x.js:4:1)", None),
        ("    add_test.go:12: got 3", Frame("add_test.go", 12)),
        ("  --> src/lib.rs:7:5", Frame("src/lib.rs", 7)),
        ("thread 'main' panicked at src/lib.rs:7:5:", Frame("src/lib.rs", 7)),
        ("/workspace/lib/add.rb:9:in `add'", Frame("lib/add.rb", 9)),
        ("see https://example.org:443/x", None),
    ],
)
def test_frames_of_other_languages_are_read(line: str, place: Frame | None) -> None:
    """In the forms in which their runners print them."""
    assert frames(f"first\n{line}\nlast") == ((place,) if place else ())


def test_what_is_too_long_to_be_written_anew_is_told_apart() -> None:
    """A small model is never asked for hundreds of lines; where to look in them is known."""
    long = "def broken(x):\n" + "    x += 1\n" * 500 + "    return helper(x)\n"
    module = parse_module("code.py", f"def helper(x):\n    return x\n\n\n{long}".encode())
    assert module is not None
    test = parsed("test_code.py", "from code import broken\n\ndef test_it():\n    broken(1)\n")
    sources = Sources((module,), (test,), {})
    report = failing("test_code.py::test_it", output="code.py:77: in broken\n")
    found = localise(sources, "", report, Coverage({"code.py": {90: 0.5, 80: 1.0, 2: 0.4}}))
    assert found.long == set(found.regions) == {Target("code.py", "broken")}
    assert any(each.first <= 77 <= each.last for each in found.regions[found.targets[0]])
    assert found.targets == (Target("code.py", "broken"), Target("code.py", "helper"))
    assert found.longest < 100
    assert found.lines == {"code.py": (77, 80, 90, 2)}


def test_what_a_failing_test_runs_alone_comes_before_what_it_names() -> None:
    """And what it names but does not run comes last."""
    module = parsed("code.py", CODE)
    (other,) = (each for each in module.definitions if each.name == "other")
    ran = Coverage({"code.py": {other.node.lineno + 1: 1.0}})
    sources = Sources((module,), (parsed("test_code.py", TEST),), {})
    report = failing("test_code.py::test_broken")
    assert localise(sources, "", report).targets[0].name == "broken"
    assert localise(sources, "", report, ran).targets[0].name == "other"


def test_where_an_error_was_raised_the_statement_is_in_question() -> None:
    """Also in a function that is not long; frames that were only passed are not."""
    module = parsed(
        "code.py", "def a(x):\n    y = b(x)\n    return y\n\ndef b(x):\n    return x[0]\n"
    )
    test = parsed("test_code.py", "from code import a\n\ndef test_it():\n    a([])\n")
    output = "code.py:2: in a\nE   IndexError: no\ncode.py:6: IndexError\n"
    report = failing("test_code.py::test_it", output=output)
    found = localise(Sources((module,), (test,), {}), "", report)
    assert found.regions == {Target("code.py", "b"): (Region(6, 6, 6, 6),)}


def test_a_function_in_a_function_counts_as_the_outer_one() -> None:
    """Unless that is long: then the inner one has turns of its own."""
    inner = "    def inner(x):\n        return x - 1\n"
    test = parsed("test_code.py", "from code import outer\n\ndef test_it():\n    outer(1)\n")
    report = failing("test_code.py::test_it", output="code.py:3: in inner\n")
    for filler, names in ((0, {"outer"}), (400, {"outer", "outer.inner"})):
        rows = "    y = 1\n" * filler
        module = parsed("code.py", f"def outer(x):\n{inner}{rows}    return inner(x)\n")
        found = localise(Sources((module,), (test,), {}), "", report)
        assert {each.name for each in found.targets} == names


def test_constants_come_behind_functions() -> None:
    """The fault is seldom there; and least where no failing test runs anything of the file."""
    code = parsed("code.py", "LIMIT = 3\n\ndef used(x):\n    return x\n")
    other = parsed("examples/code.py", "LIMIT = 3\n")
    test = parsed(
        "test_code.py", "from code import LIMIT, used\n\ndef test_a():\n    used(LIMIT)\n"
    )
    sources = Sources((other, code), (test,), {})
    ran = Coverage({"code.py": {4: 1.0}})
    found = localise(sources, "", failing("test_code.py::test_a"), ran)
    assert found.targets == (Target("code.py", "used"), Target("code.py", "LIMIT"))


def test_a_statement_that_failed_by_itself_weighs_more_than_a_raise() -> None:
    """What raises an error on purpose is often right to do so."""
    code = "def a(x):\n    return x[0]\n\ndef b(x):\n    raise KeyError(x)\n"
    module = parsed("code.py", code)
    test = parsed("test_code.py", "def test_it():\n    pass\n")
    output = "E   IndexError: no\ncode.py:2: IndexError\nE   KeyError: no\ncode.py:5: KeyError\n"
    report = failing("test_code.py::test_it", output=f"{output}code.py:99: KeyError\n")
    found = localise(Sources((module,), (test,), {}), "", report)
    assert [each.name for each in found.targets] == ["a", "b"]
    assert found.broken == {Target("code.py", "a")}
