"""A tool call and what came of it, in a few words."""

import json

import pytest

from turnout.cli.tool_lines import call_text, connection_text, outcome_text
from turnout.core.ids import ToolCallId
from turnout.core.runs import Connection
from turnout.core.tools import ToolCall, ToolResult

ID = ToolCallId("c")
DIFF = "--- a/slug.py\n+++ b/slug.py\n@@ -1 +1 @@\n-a\n+b\n"
NEW = "--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+a\n"
ENDED = "timed out after 9 s and was ended; start what must go on in the background"


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("read_file", {"path": "a\nb"}, "read_file a b"),
        ("read_file", {"path": "x" * 99}, f"read_file {'x' * 60}…"),
        ("edit_file", {"path": "a.py", "old": "1", "new": "2"}, "edit_file a.py"),
        ("run", {"command": "make\nmake test"}, "run make make test"),
        ("run_tests", {}, "run_tests"),
        ("apply_patch", {"diff": DIFF}, "apply_patch slug.py"),
        ("apply_patch", {"diff": DIFF + NEW}, "apply_patch slug.py new.py"),
        ("apply_patch", {"patch": DIFF}, "apply_patch slug.py"),
        ("apply_patch", {"diff": "do it"}, "apply_patch (a patch that cannot be read)"),
        ("read_file", [1], "read_file"),
    ],
)
def test_a_call_is_named_by_what_it_is_about(name: str, arguments: object, text: str) -> None:
    """A path, a command or the files of a patch: never the text of a diff."""
    assert call_text(ToolCall(ID, name, json.dumps(arguments))) == text


@pytest.mark.parametrize("arguments", ['{"path"', "[" * 100_000])
def test_arguments_that_are_no_json_are_said_to_be_none(arguments: str) -> None:
    """Also where reading them would go too deep."""
    assert call_text(ToolCall(ID, "run", arguments)) == "run (arguments that are no JSON)"


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("read_file", "import os\n", "✓"),
        ("run", "exit 0\nhello", "✓"),
        ("run", "exit 3\nhello", "→ exit 3"),
        ("run", ENDED, "→ timed out after 9 s and was ended"),
        ("run_tests", "6 passed, 0 failed (exit 0)\n...", "✓ 6 passed"),
        ("run_tests", "5 passed, 1 failed (exit 1). Failed: t::a\n...", "→ 1 failed, 5 passed"),
        ("run_tests", "6 passed, 0 failed (exit 2)", "→ 6 passed, 0 failed (exit 2)"),
        ("run_tests", "No tests were found.", "→ No tests were found."),
        ("run_tests", "All tests pass: 0 failed, 3 passed.", "✓ 3 passed"),
        (
            "run_tests",
            "The failing tests still fail: 2 failed, 1 passed. The files are as before.",
            "→ 2 failed, 1 passed",
        ),
    ],
)
def test_what_came_of_a_call_is_told(name: str, content: str, text: str) -> None:
    """A command that failed and tests that failed do not look like success."""
    assert outcome_text(ToolCall(ID, name, "{}"), ToolResult(ID, content)) == text


def test_an_error_is_a_cross_and_its_first_line() -> None:
    """Long ones are cut."""
    call = ToolCall(ID, "edit_file", "{}")
    failed = ToolResult(ID, "no such lines\nCopy them.", is_error=True)
    assert outcome_text(call, failed) == "✗ no such lines"
    assert outcome_text(call, ToolResult(ID, "x" * 200, is_error=True)) == f"✗ {'x' * 100}…"


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (
            Connection("a.example", 443, True, "", 1200, 5, ("TOKEN",)),
            "connection to a.example:443, with TOKEN: 1,200 bytes out, 5 in",
        ),
        (
            Connection("a.example", 80, True, "no answer"),
            "connection to a.example:80: 0 bytes out, 0 in, no answer",
        ),
        (
            Connection("x" * 99, 443, False, "not allowed"),
            f"connection to {'x' * 60}…:443 refused: not allowed",
        ),
    ],
)
def test_a_connection_says_where_to_and_what_became_of_it(asked: Connection, text: str) -> None:
    """Names of secrets, never values."""
    assert connection_text(asked) == text
