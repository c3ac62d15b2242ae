"""Edits of exactly what was named, byte for byte."""

import pytest

from turnout.agent.tools.replacing import replace_all, replace_once
from turnout.errors import ToolError


@pytest.mark.cases
@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\rb\nc\n", "c", "d", b"a\rb\nd\n"),
        (b"a\rb\rc\r", "a\nb", "x\ny\nz", b"x\ry\rz\rc\r"),
        (b"a\r\nb\nc\r\n", "b", "z", b"a\r\nz\nc\r\n"),
        (b"a\r\nb\nc\r\n", "a\nb\nc", "a\nx\ny\nc", b"a\r\nx\r\ny\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny", b"x\r\ny\r\nc\r\n"),
        (b"a\r\nb\r\n", "b", "b\nc", b"a\r\nb\r\nc\r\n"),
        (b"a\nb", "b", "c", b"a\nc"),
        (b"\xef\xbb\xbfx = 1\n", "x = 1", "x = 2", b"\xef\xbb\xbfx = 2\n"),
        (b"\xef\xbb\xbfx = 1\n", "\ufeffx = 1", "\ufeffx = 2", b"\xef\xbb\xbfx = 2\n"),
        (b"x = 1\n# caf\xe9 note\n", "x = 1", "x = 2", b"x = 2\n# caf\xe9 note\n"),
        ("\ufeffé = 1\n".encode("utf-16-le"), "= 1", "= ü", "\ufeffé = ü\n".encode("utf-16-le")),
        ("\ufeffx = 1\r\n".encode("utf-16-be"), "1", "2", "\ufeffx = 2\r\n".encode("utf-16-be")),
        (b"# caf\xe9 a\n", r"# caf\xe9 a", r"# caf\xe9 b", b"# caf\xe9 b\n"),
        (rb"'\xe9'" + b"\xe9\n", r"'\xe9'", r"'\xe8'", rb"'\xe8'" + b"\xe9\n"),
        (b"log('a');", "log('a');", "log('$& $1 $$ $` $'');", b"log('$& $1 $$ $` $'');"),
        (b"old", "old", r"\1 \g<0> \n", rb"\1 \g<0> \n"),
        (b"a\x00b\xff\n", "b", "c", b"a\x00c\xff\n"),
        ("a\u2028b\x0cc\n".encode(), "b", "d", "a\u2028d\x0cc\n".encode()),
        (b"a" * 5_000_000 + b"z", "z", "y", b"a" * 5_000_000 + b"y"),
    ],
)
def test_bytes_outside_the_match_stay(before: bytes, old: str, new: str, after: bytes) -> None:
    """Line ends, marks, other encodings and replacement patterns survive an edit."""
    assert replace_once(before, old, new).data == after


@pytest.mark.cases
@pytest.mark.parametrize(
    ("data", "old", "hint"),
    [
        (b"f\ng\nf\n", "f", "2 times (lines 1, 3)"),
        (b"aaa", "aa", "2 times"),
        (b"a" * 4_000_000, "a" * 5_000, "at least 1000 times"),
        (b"a" * 4_000_000, "a" * 5_000 + "b", "does not occur"),
        (b"  f()\ng()\n    f()\ng()\n", "f()\ng()\n", "2 times (lines 1, 3)"),
        (b"\xff\xfex\x00=", "x", "no text"),
        (b"same", "same", "are the same"),
        (b"x\n\n\ny\n", " \n ", "does not occur"),
        (b"a\r\nb\r\n", "a\r\nb", "changes nothing"),
    ],
)
def test_an_edit_that_is_not_certain_is_refused(data: bytes, old: str, hint: str) -> None:
    """The message says how often it occurs and where something like it stands."""
    new = {"are the same": old, "changes nothing": old.replace("\r", "")}.get(hint, "new")
    with pytest.raises(ToolError) as refused:
        replace_once(data, old, new)
    assert hint in str(refused.value)


@pytest.mark.cases
def test_anchors_alone_do_not_match_what_lies_between() -> None:
    """First and last line right and the middle invented: nothing is deleted."""
    data = "".join(f"def f{n}():\n    x = {n}\n    return x\n" for n in range(200)).encode()
    with pytest.raises(ToolError, match="from line 31"):
        replace_once(data, "def f10():\n    y = 0\n    return x", "")


@pytest.mark.cases
@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (
            "def f():\n    if a:\n        return 1\n",
            "if a:\n    return 1",
            "if a:\n    return 2\nelse:\n    return 3",
            "def f():\n    if a:\n        return 2\n    else:\n        return 3\n",
        ),
        ("a:\n\techo 1\n", "    echo 1", "    echo 2", "a:\n\techo 2\n"),
        (
            "\tif a:\n\t\tb()\n\t\tc()\n",
            "if a:\n    b()\n    c()",
            "if a:\n    c()\nb()",
            "\tif a:\n\t\tc()\n\tb()\n",
        ),
        ("x = 1  \ny = 2\n", "x = 1\ny = 2\n", "x = 1\ny = 3\n", "x = 1  \ny = 3\n"),
        ("if a:\n  b()\n", "    if a:\n      b()", "    if a:\n      c()", "if a:\n  c()\n"),
        ("say(“hi”)  \n", 'say("hi")', 'say("hello")', "say(“hello”)\n"),
        ("say('hi')\n", "say(‘hi’)", "say(‘hey’)", "say('hey')\n"),
        ("a – b\r\nc\r\n", "a - b\nc", "a - d\ne\nc", "a – d\r\ne\r\nc\r\n"),
        ("a\nb\nc\n", "a\r\nb\r\n", "x\r\ny\r\nz\r\n", "x\ny\nz\nc\n"),
        ("a\nb", "a\r\nb", "x\r\nb", "x\nb"),
        ("\ta – b\n\tc\n", "a - b\r\nc", "a - d\r\ne\r\nc", "\ta – d\n\te\n\tc\n"),
        ("\u00a0x = 1\ny\n", " x = 1\ny", " x = 2\ny", "\u00a0x = 2\ny\n"),
        ("a\nb", "a\nb\n", "a\nc\n", "a\nc"),
    ],
)
def test_what_is_written_otherwise_is_found_and_written_as_the_file_is(
    before: str, old: str, new: str, after: str
) -> None:
    """Indent, trailing blanks and characters that look alike, where one place can be meant."""
    edited = replace_once(before.encode(), old, new)
    assert edited.data.decode() == after


@pytest.mark.cases
@pytest.mark.parametrize(
    ("before", "old", "new", "hint"),
    [
        ("    if a:\n        b\n", "if a:\n  b", "if a:\n    b", "only in what differs"),
        ("    if a:\n        b\n", "if a:\n  b", "if a:\n     c", "as none of the old ones"),
        ("    if a:\n    b\n", "if a:\n  b", "if a:\n  c", "not indented alike"),
        ("\tx\n\ty\n", "x\ny", "if z:\n    x\ny", "as none of the old ones"),
        ("say(“hi”)\n", 'say("hi")', 'say("hi", "ho")', "characters that the file writes"),
        (
            "say(“hi”)\nx\n",
            'say("hi")\nx',
            'a = "hi"\nsay(a)\nx',
            "characters that the file writes",
        ),
    ],
)
def test_what_cannot_be_written_as_the_file_is_is_refused(
    before: str, old: str, new: str, hint: str
) -> None:
    """A place alone is not enough: the new text must be certain too."""
    with pytest.raises(ToolError, match=hint):
        replace_once(before.encode(), old, new)


@pytest.mark.parametrize(
    ("data", "refused"),
    [(b"x\n# caf\xe9\n", True), ("x\n# caf\xe9\n".encode() + b"\xff", False), (b"x\n", False)],
)
def test_no_other_encoding_is_mixed_into_a_file(data: bytes, refused: bool) -> None:
    """Only ASCII is added where the encoding of the file is not known."""
    if refused:
        with pytest.raises(ToolError, match="nothing but ASCII"):
            replace_once(data, "x", "ü")
    else:
        assert replace_once(data, "x", "ü").data == data.replace(b"x", "ü".encode())


@pytest.mark.cases
@pytest.mark.parametrize(
    ("data", "old", "new", "count", "after"),
    [
        (b"aaaa", "aa", "aab", 2, b"aabaab"),
        (b"aaaaa", "aa", "aab", 2, b"aabaaba"),
        (b"x\r\ny\r\nx\r\ny\n", "x\ny", "z\nz", 2, b"z\r\nz\r\nz\r\nz\n"),
    ],
)
def test_all_are_replaced_in_one_pass(
    data: bytes, old: str, new: str, count: int, after: bytes
) -> None:
    """What was put in is not searched again."""
    assert replace_all(data, old, new, count).data == after


@pytest.mark.parametrize(
    ("count", "hint"), [(2, "3 times"), (9, "3 times"), (1 << 60, "more than")]
)
def test_another_count_than_was_said_is_refused(count: int, hint: str) -> None:
    """Nothing is replaced that was not counted."""
    with pytest.raises(ToolError, match=hint):
        replace_all(b"a\na\na\n", "a", "b", count)
