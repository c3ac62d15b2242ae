import json

import pytest

from turnout.errors import ConfigError, ToolError
from turnout.sandbox.hearing import FOLDER
from turnout.sandbox.inside import pytest_report
from turnout.sandbox.inside.reports import listen
from turnout.sandbox.testrun import (
    USUAL_TESTS,
    TestPaths,
    detect_test_command,
    list_test_files,
    run_tests,
)
from turnout.testing.sandbox import ScriptedSandbox, result

TESTS = [
    "tests/helpers.py",
    "test_a.py",
    "pkg/b_test.py",
    "conftest.py",
    "pkg/conftest.py",
    "pytest.ini",
    "test/data.json",
    "src/__tests__/a.js",
    "a.test.ts",
    "a.spec.jsx",
    "a_test.go",
    "src/test/java/ATest.java",
    "spec/a_spec.rb",
    "app/tests.py",
]
OTHERS = [
    "contest.py",
    "latest.py",
    "src/testing/fakes.py",
    "attest/a.py",
    "tests.md",
    "src/protest.js",
    "test",
    "greatest_hits.go",
]


def lines(*facts: dict[str, object]) -> bytes:
    """Return what our plugin tells."""
    return b"".join(json.dumps(fact).encode() + b"\n" for fact in facts)


def reporting(report: bytes, **facts: object) -> ScriptedSandbox:
    """Return a sandbox whose tests tell this to who listens."""
    sandbox = ScriptedSandbox({})
    sandbox.answer("listen", result(b"7\n" + report))
    sandbox.answer("exec 2>&1", result(**facts))
    return sandbox


@pytest.mark.parametrize("path", TESTS)
def test_paths_of_tests_are_known(path):
    """Tests of common languages, their helpers and what steers them count."""
    assert USUAL_TESTS.match(path)


@pytest.mark.parametrize("path", OTHERS)
def test_other_paths_are_no_tests(path):
    """A name that merely contains the word does not count."""
    assert not USUAL_TESTS.match(path)


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"test_a.py": "", "package.json": '{"scripts": {"test": "jest"}}'}, "python -m pytest"),
        ({"pkg/a_test.py": ""}, "python -m pytest"),
        ({"tests/cases.py": ""}, "python -m pytest"),
        ({"package.json": '{"scripts": {"test": "jest"}}'}, "npm test"),
        ({"package.json": '{"scripts": {"test": "echo no test specified"}}'}, None),
        ({"package.json": "["}, None),
        (
            {"package.json": '{"scripts": 3}', "Makefile": "all:\n\ntest: all\n\ttrue\n"},
            "make test",
        ),
        ({"Makefile": "test := 1\ntests:\n"}, None),
        ({"a.py": ""}, None),
    ],
)
async def test_the_command_is_found_out(files, command):
    """Pytest wins over npm, npm over make; nothing is made up."""
    assert await detect_test_command(ScriptedSandbox(files)) == command


@pytest.mark.parametrize(
    ("pattern", "path", "is_one"),
    [
        ("*_check.py", "a/b_check.py", True),
        ("qa/**", "qa/deep/data.json", True),
        ("qa/", "qa/deep/data.json", True),
        ("qa/", "other/qa/a.py", False),
        ("**/qa/", "other/qa/a.py", True),
        ("spec/*.rb", "spec/deep/a.rb", False),
        ("*_check.py", "tests/test_a.py", False),
        ("[id]/*.py", "i/a.py", True),
    ],
)
def test_paths_of_tests_can_be_set(pattern, path, is_one):
    """Patterns take the place of the usual names."""
    assert TestPaths(("nothing", pattern)).match(path) == is_one


def test_a_pattern_that_is_none_is_told():
    """Before any run begins."""
    with pytest.raises(ConfigError, match=r"'\[z-a\]\.py' is no pattern"):
        TestPaths(("*.py", "[z-a].py")).check()


async def test_test_files_are_listed():
    """The files that a run must leave alone are named in order."""
    sandbox = ScriptedSandbox({"b_test.py": "", "a.py": "", "tests/x.py": ""})
    assert await list_test_files(sandbox) == ("b_test.py", "tests/x.py")
    assert await list_test_files(sandbox, TestPaths(("a.*",))) == ("a.py",)


async def test_data_and_helpers_of_tests_are_listed_with_them():
    """A new file in such a folder is no test, and helpers inside a package may be the product."""
    theirs = ("app/fixtures/a.json", "fixtures/b.json", "pkg/testdata/c.txt", "testing/checks.py")
    sandbox = ScriptedSandbox(dict.fromkeys((*theirs, "pkg/testing/api.py", "fixtures"), ""))
    assert await list_test_files(sandbox) == theirs
    assert await list_test_files(sandbox, TestPaths(("qa/",))) == ()
    assert not any(USUAL_TESTS.match(path) for path in theirs)


async def test_results_come_from_the_report_and_not_from_the_text():
    """What is printed may claim anything."""
    report = lines(
        {"started": 1},
        {"id": "t.py::a", "outcome": "passed"},
        {"id": "t.py::b", "outcome": "failed"},
        {"id": "t.py::c", "outcome": "skipped"},
        {"id": "broken.py", "outcome": "failed"},
        {"finished": 0},
    )
    done = await run_tests(reporting(report, stdout=b"4 passed"), "pytest", timeout=9)
    assert done.passed == ("t.py::a",)
    assert done.failed == ("t.py::b", "broken.py")
    assert not done.ok


async def test_a_failure_in_any_phase_is_a_failure():
    """A test that passes and fails to clean up has failed."""
    told = [{"id": "a", "outcome": "passed"}, {"id": "a", "outcome": "failed"}]
    report = lines({"started": 1}, *told, {"id": "a", "outcome": "passed"}, {"finished": 1})
    done = await run_tests(reporting(report, code=1), "pytest", timeout=9)
    assert (done.passed, done.failed) == ((), ("a",))


async def test_a_session_that_vanishes_is_no_success():
    """`os._exit(0)` in a test must not look like a run that passed."""
    report = lines({"started": 1}, {"id": "a", "outcome": "passed"})
    done = await run_tests(reporting(report, code=0), "pytest", timeout=9)
    assert done.exit_code is None
    assert not done.ok
    assert "did not come to its end" in done.output


@pytest.mark.parametrize(
    ("report", "code", "command"),
    [
        (lines({"started": 1}, {"finished": 5}), 5, "make test"),
        (lines({"started": 1}, {"id": "a", "outcome": "skipped"}, {"finished": 0}), 0, "pytest"),
        (b"", 5, "python -m pytest"),
        (b"", 127, "nope"),
    ],
)
async def test_a_run_of_no_test_finds_nothing(report, code, command):
    """Nothing collected, all skipped, no such command: no tests were found, and that is no pass."""
    done = await run_tests(reporting(report, code=code), command, timeout=9)
    assert not done.found
    assert not done.ok


@pytest.mark.parametrize(("code", "ok"), [(0, True), (1, False)])
async def test_other_runners_are_judged_by_their_exit_status(code, ok):
    """Without a report the status says it all."""
    done = await run_tests(reporting(b"", code=code), "make test", timeout=9)
    assert (done.found, done.ok, done.passed) == (True, ok, ())


async def test_a_broken_conftest_is_a_failure_and_not_an_absence():
    """A session that cannot start because of the repository's own code was found."""
    report = lines({"started": 1}, {"finished": 4})
    done = await run_tests(reporting(report, code=4), "pytest", timeout=9)
    assert done.found
    assert not done.ok


@pytest.mark.parametrize(
    ("command", "selector", "line"),
    [
        ("pytest -q", "t.py::a -k 'x or y'", "pytest -q t.py::a -k 'x or y'"),
        ("pytest", "a; touch b", "pytest 'a;' touch b"),
        ("pytest", "$(touch b)", "pytest '$(touch' 'b)'"),
        ("pytest", "it's", """pytest 'it'"'"'s'"""),
        ("npm test", "a.test.js", "npm test -- a.test.js"),
        ("pytest ", "  ", "pytest"),
    ],
)
async def test_a_selector_is_arguments_and_nothing_else(command, selector, line):
    """No word of it can be a command of the shell."""
    done = await run_tests(reporting(b""), command, selector=selector, timeout=9)
    assert done.command == line


async def test_make_takes_no_selector():
    """A selector would be another target; the model is told."""
    with pytest.raises(ToolError, match="cannot be chosen"):
        await run_tests(reporting(b""), "make test", selector="a", timeout=9)


async def test_output_is_text_that_any_store_takes():
    """Escape sequences go; control characters and bad bytes become visible."""
    raw = b"\x1b[31mred\x1b[0m \x1b]0;title\x07\xff\x00 50%\r100%\r\nend"
    done = await run_tests(reporting(b"", stdout=raw), "make test", timeout=9)
    assert done.output == "red \\xff\\x00 50%\n100%\nend"


async def test_a_hostile_report_is_survived():
    """Lines that are no report are passed over."""
    report = b'\xff\xfe\n[]\n{"id": 3}\n{"started": "x"}\n' + b"[" * 100_000 + b"\n"
    done = await run_tests(reporting(report, code=0), "make test", timeout=9)
    assert (done.passed, done.failed) == ((), ())


async def test_somebody_listens_while_the_tests_run_and_no_longer() -> None:
    """In a folder that holds nothing of an earlier process, and that goes again."""
    sandbox = reporting(b"")
    await run_tests(sandbox, "pytest", selector="t.py::a", timeout=9)
    listens, _, ends = sandbox.commands
    assert "rm -rf" in listens.argv[2]
    assert listens.argv[4] == FOLDER
    assert sandbox.inputs[0] == b'["t.py::a"]'
    assert ends.argv[2:] == ('kill -TERM "$2"; rm -rf -- "$1"', "sh", FOLDER, "7")
    assert f"{pytest_report.PARENT}/{pytest_report.NAME}" == FOLDER
    assert pytest_report.SOCKET == listen.NAME


async def test_where_nobody_can_listen_the_status_says_it_all():
    """Without any Python inside no test can be heard of, and nothing waits for it."""
    sandbox = ScriptedSandbox({})
    sandbox.answer("exec 2>&1", result(code=1))
    done = await run_tests(sandbox, "make test", timeout=9)
    assert (done.passed, done.failed, done.exit_code) == ((), (), 1)


@pytest.mark.cheats
@pytest.mark.parametrize(
    ("command", "sessions"),
    [
        ("pytest -q", "1"),
        ("export A=1\nulimit -t 9 2>/dev/null\npython -m pytest --maxfail=0", "1"),
        ("cd tests && PYTEST_ADDOPTS=-q /venv/bin/python3.11 -X dev -m pytest", "1"),
        ("pytest a; pytest b", "1000"),
        ("make test", "1000"),
        ("tox -- pytest", "1000"),
    ],
)
async def test_no_more_sessions_are_heard_than_a_command_starts(command, sessions):
    """One that a patch starts beside the only one claims nothing."""
    sandbox = reporting(b"")
    await run_tests(sandbox, command, timeout=9)
    assert sandbox.commands[0].argv[6] == sessions


@pytest.mark.cheats
async def test_a_file_that_leaves_itself_out_passes_no_test_in_a_later_session():
    """It could not be got into, so nobody else has been in it."""
    first = [{"started": 1}, {"id": "t.py", "outcome": "skipped"}, {"finished": 0}]
    again = [{"started": 2}, {"id": "t.py::a", "outcome": "passed"}, {"finished": 0}]
    done = await run_tests(reporting(lines(*first, *again), code=0), "make test", timeout=9)
    assert done.passed == ()


@pytest.mark.cheats
async def test_after_a_session_that_was_broken_off_nothing_passes():
    """Whatever it had not come to."""
    first = [{"started": 1}, {"finished": 3}]
    again = [{"started": 2}, {"id": "t.py::a", "outcome": "passed"}, {"finished": 0}]
    done = await run_tests(reporting(lines(*first, *again), code=0), "make test", timeout=9)
    assert done.passed == ()


@pytest.mark.cheats
async def test_a_session_that_vanishes_before_it_starts_is_no_success():
    """The key is gone, and nobody says what for."""
    done = await run_tests(reporting(lines({"taken": True}), code=0), "pytest", timeout=9)
    assert not done.ok
    assert "did not come to its end" in done.output


@pytest.mark.cheats
async def test_a_result_that_its_twin_gives_away_is_a_failure():
    """Whatever was reported before or afterwards."""
    told = [{"id": "a", "outcome": "passed"}, {"id": "a", "outcome": "forged"}]
    report = lines({"started": 1}, *told, {"finished": 0}, {"id": "a", "outcome": "passed"})
    done = await run_tests(reporting(report, code=0), "pytest", timeout=9)
    assert (done.passed, done.failed, done.ok) == ((), ("a",), False)
    assert "must fail" in done.output


@pytest.mark.cheats
async def test_a_later_session_makes_nothing_better():
    """What was skipped or failed once is not passed by saying so again."""
    first = [{"id": "a", "outcome": "skipped"}, {"id": "b", "outcome": "failed"}]
    again = [{"id": name, "outcome": "passed"} for name in "abc"]
    report = lines({"started": 1}, *first, {"finished": 1}, {"started": 2}, *again, {"finished": 0})
    done = await run_tests(reporting(report, code=0), "pytest", timeout=9)
    assert (done.passed, done.failed) == (("c",), ("b",))


def test_twins_fail_in_the_ways_that_tests_do():
    """All fail plainly; of few tests each fails in every way, of many each in one more."""
    few, many = pytest_report.kinds_for(3), pytest_report.kinds_for(2_000)
    assert few == [[AssertionError, *pytest_report.KINDS]] * 3
    assert all(kinds[0] is AssertionError and len(kinds) == 2 for kinds in many)
    assert {kinds[1] for kinds in many} == {*pytest_report.KINDS}


@pytest.mark.parametrize("kind", [AssertionError, *pytest_report.KINDS])
def test_a_twin_fails_with_the_error_that_it_was_made_for(kind):
    """One that fails to be made is no sign of anything."""
    with pytest.raises(kind) as caught:
        pytest_report.failing(kind)()
    assert caught.type is kind
