"""Patches as models write them."""

import pytest

from turnout.agent.tools.patch_place import patched
from turnout.agent.tools.patch_text import parse_patch
from turnout.errors import ToolError

TWO = b"def f():\n    pass\n\ndef g():\n    pass\n"
F_RETURNS = b"def f():\n    return 1\n\ndef g():\n    pass\n"
HEAD = "--- a/x.py\n+++ b/x.py\n"


def after(before: bytes, diff: str) -> bytes:
    """Return what one file becomes."""
    (patch,) = parse_patch(diff)
    return patched(before, patch).data


@pytest.mark.cases
@pytest.mark.parametrize(
    "diff",
    [
        HEAD + "@@ -1,4 +1,4 @@\n def f():\n-    pass\n+    return 1\n \n def g():\n",
        HEAD + "@@ -9,1 +7,33 @@\n def f():\n-    pass\n+    return 1\n\n def g():\n",
        HEAD + "@@ @@\n def f():\n-    pass\n+    return 1\n",
        HEAD + "@@\n def f():\n-    pass\n+    return 1",
        "\ufeff" + HEAD + "@@ -1,2 +1,2 @@\n def f():\n-    pass\n+    return 1\n",
        f"Look:\n```diff\n{HEAD}@@ -1 +1 @@\n def f():\n-    pass\n+    return 1\n```\n- Done.",
        (HEAD + "@@ -1,2 +1,2 @@\n def f():\n-    pass\n+    return 1\n").replace("\n", "\r\n"),
        "diff --git a/x.py b/x.py\nindex 1111111..2222222 100644\n"
        + HEAD
        + "@@ -2 +2 @@\n-    pass\n+    return 1\n",
        "*** Begin Patch\n*** Update File: x.py\n@@ def f():\n-    pass\n+    return 1\n*** End",
        "*** Begin Patch\r\n*** Update File: x.py\r\n def f():\r\n-    pass\r\n+    return 1\r\n",
        "apply_patch <<'E'\n*** Update File: x.py\n@@\n def f():\n-    pass\n+    return 1\nE\n",
        "\n*** Begin Patch\n*** Update File: x.py\n def f():\n-    pass\n+    return 1\n",
    ],
)
def test_a_patch_is_read_however_it_is_wrapped(diff: str) -> None:
    """Fences, prose, wrong counts, missing numbers, CRLF and the other form change nothing."""
    assert after(TWO, diff) == F_RETURNS


@pytest.mark.cases
@pytest.mark.parametrize(
    ("before", "body", "expected"),
    [
        (b"a\r\nb\r\n", "-b\n+c\n", b"a\r\nc\r\n"),
        (b"a\nb", "-b\n+c\n", b"a\nc"),
        (b"a\nb", " b\n+c\n", b"a\nb\nc"),
        (b"a\nb", "-b\n\\ No newline at end of file\n+c\n", b"a\nc\n"),
        (b"a\nb\n", "-b\n+c\n\\ No newline at end of file\n", b"a\nc"),
        (b"a\r\nb\nc\r\n", "-b\n+z\n", b"a\r\nz\nc\r\n"),
        (b"a\nb\nc\n", " a\r\n-b\r\n+B\r\n+X\r\n c\r\n", b"a\nB\nX\nc\n"),
        (b"a\r\nb\nc\n", " a\r\n-b\r\n+B\r\n c\r\n", b"a\r\nB\nc\n"),
        (b"a\nb", " a\r\n-b\r\n+B\r\n", b"a\nB"),
        (b"\ta\n\tb\n", " a\r\n-b\r\n+B\r\n", b"\ta\n\tB\n"),
        (b"a\nb\n", "-b\n+B\r\n", b"a\nB\r\n"),
        (b"a\n\xe9\n", "-a\n+b\n", b"b\n\xe9\n"),
        (b"# caf\xe9\na\n", " # caf\\xe9\n-a\n+b\n", b"# caf\xe9\nb\n"),
        (b"# caf\xe9 a\n", "-# caf\\xe9 a\n+# caf\\xe9 b\n", b"# caf\xe9 b\n"),
        (b"a  \nb\n", " a\n-b\n+c\n", b"a  \nc\n"),
        (b"-- x\n", "--- x\n+++ y\n", b"++ y\n"),
    ],
)
def test_lines_outside_the_change_stay(before: bytes, body: str, expected: bytes) -> None:
    """Line ends, the last line's missing break, other encodings and trailing space survive."""
    assert after(before, f"{HEAD}@@ -1 +1 @@\n{body}") == expected


@pytest.mark.parametrize(
    ("counts", "names", "files"),
    [
        ("-1,2 +1,2", ("x", "y"), 1),
        ("-1,3 +1,4", ("x", "y"), 2),
        ("-1 +1", ("x", "y"), 2),
        ("-1,2 +1,2", ("a/x", "b/x"), 2),
        ("-1,2 +1,2", ("x", "x"), 2),
        ("-1,2 +1,2", ("/dev/null", "x"), 2),
    ],
)
def test_lines_like_a_header_are_content_where_a_hunk_lacks_them(
    counts: str, names: tuple[str, str], files: int
) -> None:
    """A comment that begins with dashes is changed; names of one file begin another section."""
    diff = f"@@ {counts} @@\n-q\n+Q\n--- {names[0]}\n+++ {names[1]}\n@@ -8 +8 @@\n-s\n+S\n"
    patches = parse_patch(HEAD + diff)
    assert len(patches) == files
    if files == 1:
        assert patched(b"q\n-- x\nr\ns\n", patches[0]).data == b"Q\n++ y\nr\nS\n"


def test_a_hunk_of_nothing_but_lines_like_a_header_has_them() -> None:
    """Whatever its counts say; the next hunk follows."""
    diff = "@@ -1,7 +1,9 @@\n--- x\n+++ y\n@@ -2 +2 @@\n-s\n+S\n"
    assert after(b"-- x\ns\n", HEAD + diff) == b"++ y\nS\n"


def test_a_header_after_a_move_of_other_names_begins_another_file() -> None:
    """The move is kept."""
    moved = "diff --git a/f b/g\nsimilarity index 100%\nrename from f\nrename to g\n"
    patches = parse_patch(moved + "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+new\n")
    assert [(one.old, one.new) for one in patches] == [("f", "g"), (None, "f")]
    (one,) = parse_patch(moved + "--- a/f\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n")
    assert (one.old, one.new, len(one.hunks)) == ("f", "g", 1)


@pytest.mark.cases
@pytest.mark.parametrize(
    ("diff", "hint"),
    [
        (HEAD + "@@ def h():\n+    x = 1\n", "does not say where"),
        (HEAD + "@@ -9,1 +9,1 @@\n-    pass\n+    return 1\n", "occur 2 times (from lines 2, 5)"),
        (HEAD + "@@ -1 +1 @@\n-    pas\n+    return 1\n", "closest region, from line 2"),
        (HEAD + "@@ -1 +1 @@\n def f():\n-    pass\nreturn 1\n+x\n", "belongs to no hunk"),
        (HEAD + "@@ -1 +1 @@\n-    pass\n+    x\n\nIt:\n- mends x\n", "put a fence"),
        (HEAD + "@@ -1 +1 @@\n def f():\n", "no change"),
        ("I changed x.py for you.", "no change"),
        ("--- a/y.py\n+++ b/y.py\n-a\n+b\n" + HEAD + "@@ -1 +1 @@\n-a\n", "no hunk follows"),
        (HEAD + "@@ -1 +1 @@\n-a\n+b\n```\n--- a/y.py\n+++ b/y.py\n-a\n", "no hunk follows"),
        ("--- a/x.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-other\n", "not those of the file"),
        ("diff --git a/x b/x\nGIT binary patch\n", "Binary"),
    ],
)
def test_a_patch_that_is_not_certain_is_refused(diff: str, hint: str) -> None:
    """Nothing is guessed: the message says what to add."""
    with pytest.raises(ToolError) as refused:
        after(TWO, diff)
    assert hint in str(refused.value)


@pytest.mark.cases
@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("a/app/[id]/page.tsx", "b/app/[id]/page.tsx", "app/[id]/page.tsx"),
        ("app/page.tsx", "app/page.tsx", "app/page.tsx"),
        ("a/x.py", "x.py", "x.py"),
        ("x.py", "b/x.py", "x.py"),
        ("/repo/x.py", "/repo/x.py", "/repo/x.py"),
        ("a/a\tb", "b/a\tb", "a\tb"),
        ("a/x b/y.txt\t", "b/x b/y.txt\t", "x b/y.txt"),
        ("a/x b/y.txt\t2026-01-01", "b/x b/y.txt", "x b/y.txt"),
        ('"a/caf\\303\\251.py"', '"b/caf\\303\\251.py"', "café.py"),
        ("a/café.py", "b/café.py", "café.py"),
        ('"a/a \\"b\\".txt"', '"b/a \\"b\\".txt"', 'a "b".txt'),
    ],
)
def test_a_path_is_read_in_every_form(old: str, new: str, path: str) -> None:
    """Prefixes, quotes, dates and blanks are not taken for the name."""
    (patch,) = parse_patch(f"--- {old}\n+++ {new}\n@@ -1 +1 @@\n-a\n+b\n")
    assert (patch.old, patch.new) == (path, path)


def test_a_new_file_may_have_blank_lines_without_a_mark() -> None:
    """Nothing can be unchanged in a file that is not there."""
    diff = "--- /dev/null\n+++ b/n.py\n@@ -0,0 +1,3 @@\n+a\n\n+b\n"
    assert after(b"", diff) == b"a\n\nb\n"


def test_sections_of_one_file_are_joined() -> None:
    """Two sections for the same path are one change of it."""
    diff = (
        HEAD
        + "@@ -4,2 +4,2 @@\n def g():\n-    pass\n+    return 2\n"
        + HEAD
        + "@@ -1,2 +1,2 @@\n def f():\n-    pass\n+    return 1\n"
    )
    assert after(TWO, diff) == b"def f():\n    return 1\n\ndef g():\n    return 2\n"


def test_files_are_made_deleted_renamed_and_given_modes() -> None:
    """Header lines of git and of the other form say what becomes of the file."""
    made, gone, moved, mode = parse_patch(
        "*** Add File: n.sh\n+echo\n"
        "*** Delete File: old.py\n"
        "diff --git a/p.py b/q.py\nsimilarity index 100%\nrename from p.py\nrename to q.py\n"
        "diff --git a/m.sh b/m.sh\nold mode 100644\nnew mode 100755\n"
    )
    assert (made.old, made.new, patched(b"", made).data) == (None, "n.sh", b"echo\n")
    assert (gone.old, gone.new) == ("old.py", None)
    assert (moved.old, moved.new, moved.hunks) == ("p.py", "q.py", ())
    assert mode.modes == ("old mode 100644", "new mode 100755")


@pytest.mark.cases
@pytest.mark.parametrize("marked", ["", "\ufeff"])
def test_a_byte_order_mark_stays_where_it_is(marked: str) -> None:
    """Models never see it, and some copy it when they do."""
    diff = f"{HEAD}@@ -1,2 +1,2 @@\n-{marked}one\n+{marked}ONE\n two\n"
    assert after(b"\xef\xbb\xbfone\ntwo\n", diff) == b"\xef\xbb\xbfONE\ntwo\n"


@pytest.mark.cases
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (" one\n+half\n two\n", b"\xef\xbb\xbfone\nhalf\ntwo\n"),
        ("+zero\n one\n", b"\xef\xbb\xbfzero\none\ntwo\n"),
        ("-one\n two\n", b"\xef\xbb\xbftwo\n"),
    ],
)
def test_a_byte_order_mark_is_always_first(body: str, expected: bytes) -> None:
    """Whichever line the file begins with in the end."""
    assert after(b"\xef\xbb\xbfone\ntwo\n", f"{HEAD}@@\n{body}") == expected


@pytest.mark.cases
def test_lines_that_are_only_added_go_below_the_line_that_is_named() -> None:
    """Not to the end of the file."""
    diff = "*** Begin Patch\n*** Update File: x.py\n@@ def f():\n+    x = 1\n*** End Patch"
    assert after(TWO, diff) == b"def f():\n    x = 1\n    pass\n\ndef g():\n    pass\n"


@pytest.mark.parametrize(
    ("before", "body", "expected"),
    [
        (
            b"class A:\n    def f():\n        pass\n",
            " def f():\n-    pass\n+    if a:\n+        b()\n",
            b"class A:\n    def f():\n        if a:\n            b()\n",
        ),
        (b"all:\n\techo 1\n", " all:\n-    echo 1\n+    echo 2\n", b"all:\n\techo 2\n"),
        (
            "s = \u201ca\u201d  # one\nt\n".encode(),
            '-s = "a"  # one\n+s = "a"  # two\n t\n',
            "s = \u201ca\u201d  # two\nt\n".encode(),
        ),
    ],
)
def test_a_hunk_in_other_blanks_or_looks_is_written_as_the_file_is(
    before: bytes, body: str, expected: bytes
) -> None:
    """The file's indent, tabs and characters stay, where only one place can be meant."""
    assert after(before, f"{HEAD}@@ -1,2 +1,2 @@\n{body}") == expected
