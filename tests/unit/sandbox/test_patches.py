"""Reading unified diffs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.errors import ToolError
from turnout.sandbox.patches import check_patch, names_git, parse_patch

GIT = b"""\
diff --git a/old name.txt b/new name.txt
similarity index 90%
rename from old name.txt
rename to new name.txt
index 1..2 100644
--- a/old name.txt
+++ b/new name.txt
@@ -2,3 +2,3 @@ section
 kept
--- a/not a header
+++ b/not a header
 kept
"""


def test_names_modes_and_hunks_are_read() -> None:
    """A rename names both paths, and a hunk has the lines it counts."""
    (change,) = parse_patch(GIT)
    assert (change.old, change.new) == (b"old name.txt", b"new name.txt")
    (hunk,) = change.hunks
    assert hunk.start == 2
    assert hunk.lines == [b" kept", b"--- a/not a header", b"+++ b/not a header", b" kept"]
    assert check_patch(GIT) == ("new name.txt",)


def test_lines_of_a_hunk_are_no_headers() -> None:
    """Text that looks like a header is text as long as the hunk counts it."""
    patch = b"--- a/doc\n+++ b/doc\n@@ -1,2 +1,2 @@\n--- a/../out\n+++ b/../out\n text\n"
    assert check_patch(patch) == ("doc",)


def test_a_header_beyond_the_count_is_one() -> None:
    """Text behind the counted lines is judged as what it is."""
    patch = b"--- a/doc\n+++ b/doc\n@@ -1 +1 @@\n-a\n+b\n--- a/../out\n+++ b/../out\n"
    with pytest.raises(ToolError, match="leaves the workspace"):
        check_patch(patch)


def test_an_empty_file_and_a_mode_need_no_hunk() -> None:
    """The first line names the path where no other does."""
    patch = (
        b"diff --git a/e b/e\nnew file mode 100644\nindex 0..0\n"
        b"diff --git a/run b/run\nold mode 100644\nnew mode 100755\n"
    )
    added, changed = parse_patch(patch)
    assert (added.old, added.new) == (None, b"e")
    assert changed.modes == [b"100644", b"100755"]
    assert check_patch(patch) == ("e", "run")


def test_quoted_names_are_unquoted() -> None:
    """Git writes odd bytes as octal numbers within quotes."""
    patch = b'diff --git "a/a\\303\\244\\t" "b/a\\303\\244\\t"\nnew file mode 100644\n'
    assert check_patch(patch) == ("aä\t",)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"rename to ../x", "leaves the workspace"),
        (b"copy to /x", "leaves the workspace"),
        (b'rename to "\\056git/x"', "git's own"),
        (b"new mode 104755", "mode 104755"),
        (b"new file mode 160000", "mode 160000"),
        (b"deleted file mode 040000", "mode 040000"),
    ],
)
def test_each_header_line_is_judged(line: bytes, reason: str) -> None:
    """A path or a mode is refused on whichever line it stands."""
    with pytest.raises(ToolError, match=reason) as caught:
        check_patch(b"diff --git a/a b/a\n" + line + b"\n")
    assert caught.value.mend


@given(st.binary(max_size=300))
def test_any_bytes_are_read(data: bytes) -> None:
    """What is no patch is no crash."""
    parse_patch(data)
    parse_patch(b"--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n" + data)


@pytest.mark.parametrize(
    ("path", "names"),
    [
        (".git", True),
        ("a/.GIT/config", True),
        (".g\u200cit/x", True),
        ("\ufeff.git", True),
        ("GIT~1/hooks/x", True),
        (".git . .", True),
        (".git::$INDEX_ALLOCATION/x", True),
        (".gitignore", False),
        ("a.git", False),
        (".git~1", False),
        ("git", False),
        ("a/.gi\udcfft", False),
        ("", False),
    ],
)
def test_git_is_known_by_all_its_names(path: str, names: bool) -> None:
    """On every system that the tree may be taken to."""
    assert names_git(path.encode(errors="surrogateescape")) is names


def test_numbers_without_end_are_no_hunk() -> None:
    """They are refused as text is, not met with an error of ours."""
    with pytest.raises(ToolError):
        check_patch(b"@@ -" + b"1" * 5000 + b" +1 @@\n-a\n+b\n")
