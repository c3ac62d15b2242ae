"""What is shown of a call that waits for a person: every line that it would change."""

import json
import re
from dataclasses import replace
from html import unescape
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.web.console.runs.told import HOSTILE, SEEN
from tests.unit.web.console.seen import Console, words
from tests.unit.web.rooms import ASKED

from turnout.core.ids import ToolCallId
from turnout.core.tools import ToolCall
from turnout.web.console.runs.diff.asked import changes_of

PATCH = (
    "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,99 +1,1 @@ class A:\n def f(x):\n-    return 1\n"
    f"+    return 2  {HOSTILE}\n--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+one\n"
    "--- a/old.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"
)


def call(tool: str, **arguments: object) -> ToolCall:
    """Return a call of a tool."""
    return ToolCall(ToolCallId("call-1"), tool, json.dumps(arguments))


async def test_a_patch_that_waits_is_shown_file_by_file() -> None:
    """In colours with its line numbers, beside who wants it, where and under which policy."""
    console = Console()
    run_id = await console.service.order(policy="team")
    asked = replace(ASKED, call=call("apply_patch", diff=PATCH))
    run = await console.service.begun(run_id, asked)
    await console.service.orders.wait(run_id, run.epoch, asked)
    page = console.person().get(f"/runs/{run_id}")
    said = words(page)
    assert f"Run {run_id} , step 2, rule run_command" in said
    assert "Repository shop at HEAD Ordered by red-member, project red Policy team" in said
    assert "src/a.py +1 −1" in said
    assert "new.txt added +1 −0" in said
    assert "old.txt deleted +0 −1" in said
    assert f"+    return 2  {SEEN}" in unescape(re.sub(r"<[^>]*>", "", page.text))
    assert page.text.count('<table class="diff unified">') == 3
    assert '<tr class="deleted">' in page.text
    assert "<script>alert" not in page.text
    assert "The call as it came diff:" in said


def test_edits_show_what_goes_and_what_comes() -> None:
    """Lines that stay are no change; a file that is written whole is all new."""
    (edited,) = changes_of(call("edit_file", path="a.py", old="x\ny\nz", new="x\nY\nw\nz"))
    kinds = [(line.kind, line.text) for line in edited.hunks[0].lines]
    assert kinds == [
        ("same", "x"),
        ("deleted", "y"),
        ("added", "Y"),
        ("added", "w"),
        ("same", "z"),
    ]
    (made,) = changes_of(call("edit_file", path="a.py", old="", new="x"))
    assert (made.path, made.status, made.added) == ("a.py", "added", 1)
    (written,) = changes_of(call("write_file", path="b/c", content="1\n2\n"))
    assert (written.path, written.added, written.deleted) == ("b/c", 2, 0)
    (many,) = changes_of(call("edit_file", path="a", old="x", new="y", count=7))
    assert "7 places" in many.hunks[0].head


@pytest.mark.parametrize(
    "other",
    [
        call("run_command", command="ls"),
        call("apply_patch", diff=7),
        call("write_file", path="a", content="x\n" * 3_000),
        call("write_file", path="a", content="x" * 200_000),
        ToolCall(ToolCallId("c"), "apply_patch", "{"),
        ToolCall(ToolCallId("c"), "apply_patch", "[" * 5_000),
        ToolCall(ToolCallId("c"), "apply_patch", "[]"),
    ],
)
def test_what_is_no_change_or_too_long_is_shown_as_it_came(other: ToolCall) -> None:
    """Nothing is made of it."""
    assert changes_of(other) == ()


LINES = st.lists(
    st.sampled_from(
        [
            "--- a/x",
            "+++ b/x",
            "--- /dev/null",
            "@@ -1 +1 @@",
            "@@",
            "+a",
            "-b",
            " c",
            "d",
            "\\ No",
            "",
        ]
    ),
    max_size=30,
)


@given(LINES)
def test_no_line_of_a_patch_is_left_out(lines: list[str]) -> None:
    """Whatever a model sends: each line is a name, a head or a line that is shown."""
    files = changes_of(call("apply_patch", diff="\n".join(lines)))
    shown = sum(1 + len(hunk.lines) for file in files for hunk in file.hunks)
    made = sum(hunk.head == "@@" for file in files for hunk in file.hunks)
    heads = sum(line.startswith("@@") for line in lines)
    names = sum(
        2 for one, two in pairwise(lines) if one.startswith("--- ") and two.startswith("+++ ")
    )
    sent = "\n".join(lines).splitlines()
    own = made - sum(line == "@@" for line in lines)
    assert shown - own == len(sent) - names
    assert heads <= shown
    for sign, kind in (("+a", "added"), ("-b", "deleted")):
        told = [x for f in files for h in f.hunks for x in h.lines if x.kind == kind]
        assert sum(x.text == sign[1:] for x in told) == lines.count(sign)
