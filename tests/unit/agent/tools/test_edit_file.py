"""Edits of exactly what was named, byte for byte."""

import pytest

from turnout.agent.tools.edit_file import replace_once
from turnout.errors import ToolError


@pytest.mark.cases
@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\rb\nc\n", "c", "d", b"a\rb\nd\n"),
        (b"a\r\nb\nc\r\n", "b", "z", b"a\r\nz\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny", b"x\r\ny\r\nc\r\n"),
        (b"a\r\nb\r\n", "b", "b\nc", b"a\r\nb\r\nc\r\n"),
        (b"a\nb", "b", "c", b"a\nc"),
        (b"\xef\xbb\xbfx = 1\n", "x = 1", "x = 2", b"\xef\xbb\xbfx = 2\n"),
        (b"x = 1\n# caf\xe9 note\n", "x = 1", "x = 2", b"x = 2\n# caf\xe9 note\n"),
        (b"log('a');", "log('a');", "log('$& $1 $$ $` $'');", b"log('$& $1 $$ $` $'');"),
        (b"old", "old", r"\1 \g<0> \n", rb"\1 \g<0> \n"),
        (b"a\x00b\xff\n", "b", "c", b"a\x00c\xff\n"),
        ("a\u2028b\x0cc\n".encode(), "b", "d", "a\u2028d\x0cc\n".encode()),
        (b"a" * 5_000_000 + b"z", "z", "y", b"a" * 5_000_000 + b"y"),
    ],
)
def test_bytes_outside_the_match_stay(before: bytes, old: str, new: str, after: bytes) -> None:
    """Line ends, marks, other encodings and replacement patterns survive an edit."""
    assert replace_once(before, old, new) == after


@pytest.mark.cases
@pytest.mark.parametrize(
    ("data", "old", "hint"),
    [
        (b"f\ng\nf\n", "f", "2 times (lines 1, 3)"),
        (b"aaa", "aa", "2 times"),
        (b"a" * 4_000_000, "a" * 5_000, "at least 1000 times"),
        (b"a" * 4_000_000, "a" * 5_000 + "b", "does not occur"),
        (b"a\r\nb\nc\n", "a\nb\nc", "does not occur"),
        (b"def f():\n    if a:\n        return 1\n", "if a:\n    return 1", "        return 1"),
        (b"a:\n\techo 1\n", "    echo 1", "closest region, from line 2"),
        ("x = 1\n".encode("utf-16"), "x", "UTF-16"),
        (b"same", "same", "are the same"),
    ],
)
def test_an_edit_that_is_not_certain_is_refused(data: bytes, old: str, hint: str) -> None:
    """The message says how often it occurs and where something like it stands."""
    with pytest.raises(ToolError) as refused:
        replace_once(data, old, old if hint == "are the same" else "new")
    assert hint in str(refused.value)


@pytest.mark.cases
def test_anchors_alone_do_not_match_what_lies_between() -> None:
    """First and last line right and the middle invented: nothing is deleted."""
    data = "".join(f"def f{n}():\n    x = {n}\n    return x\n" for n in range(200)).encode()
    with pytest.raises(ToolError, match="from line 31"):
        replace_once(data, "def f10():\n    y = 0\n    return x", "")
