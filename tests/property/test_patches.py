"""Whatever two versions of a file differ in, a mangled diff of them is applied exactly."""

import difflib
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.agent.tools.patch_place import patched
from turnout.agent.tools.patch_text import parse_patch

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "  d", "- e", "+ f", "@@ g"]), max_size=12)


@st.composite
def versions(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Two versions of a file whose lines are unique, so that every hunk has one place."""
    old = [f"{line} {number}" for number, line in enumerate(draw(LINES))]
    new = list(old)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(new)))
        new[at : at + draw(st.integers(0, 2))] = draw(LINES.map(lambda lines: lines[:3]))
    return old, new


def diff_of(old: list[str], new: list[str]) -> str:
    """Return a unified diff as Python's own library makes it."""
    return "\n".join(difflib.unified_diff(old, new, "a/x.py", "b/x.py", lineterm=""))


@given(versions(), st.booleans(), st.booleans(), st.sampled_from([b"", b"\xef\xbb\xbf"]))
def test_a_mangled_diff_gives_the_new_version(
    pair: tuple[list[str], list[str]], crlf: bool, fenced: bool, mark: bytes
) -> None:
    """Wrong counts, a fence, prose, the file's own line ends and mark do not matter."""
    old, new = pair
    diff = diff_of(old, new)
    if not diff or not old:
        return
    diff = re.sub(r"(?m)^@@ -(\d+),[1-9]\d* \+.*", r"@@ -\1,77 +5,99 @@", diff)
    if fenced:
        diff = f"The fix:\n```diff\n{diff}\n```\nDone.\n"
    end = b"\r\n" if crlf else b"\n"
    (patch,) = parse_patch(diff)
    assert patched(mark + _bytes(old, end), patch).data == mark + _bytes(new, end)


@settings(max_examples=25, deadline=None)
@given(versions(), st.booleans(), st.sampled_from(["", "bare", "crlf"]))
def test_a_damaged_diff_does_what_git_does_with_the_clean_one(
    pair: tuple[list[str], list[str]], unterminated: bool, damage: str
) -> None:
    """Headers without numbers, and CRLF in the diff alone, are repaired to the same bytes."""
    old, new = pair
    before, after = _bytes(old, b"\n"), _bytes(new, b"\n")
    if unterminated:
        before, after = before.removesuffix(b"\n"), after.removesuffix(b"\n")
    clean = _git_diff(before, after)
    if not before or not after or not clean:
        return
    assert git_applied({"x.py": before}, clean) == {"x.py": after}
    text = clean.decode()
    if damage == "crlf":
        text = text.replace("\n", "\r\n")
    elif damage == "bare" and " -0,0 " not in text:
        text = re.sub(r"(?m)^@@ .*?@@.*", "@@", text)
    (patch,) = parse_patch(text)
    if damage == "bare" and any(all(x.side == "+" for x in h.lines) for h in patch.hunks):
        return
    assert patched(before, patch).data == after


@pytest.mark.cases
@pytest.mark.parametrize(
    "name",
    [
        "app/[id]/page.tsx",
        "x b/y.txt",
        "-n.txt",
        "my 'dir'/a \"b\".txt",
        "café.txt",
        "a\tb",
        "a\\b",
    ],
)
def test_the_name_that_git_writes_is_read(name: str) -> None:
    """Whatever a path is made of, quoted or not."""
    for quote in ("true", "false"):
        (patch,) = parse_patch(_git_diff(b"a\n", b"b\n", name, quote).decode())
        assert (patch.old, patch.new) == (name, name)


def git_applied(files: Mapping[str, bytes], diff: bytes) -> dict[str, bytes]:
    """Return what `git apply` makes of files."""
    with TemporaryDirectory() as folder:
        for name, data in files.items():
            Path(folder, name).write_bytes(data)
        _git(folder, "apply", "--whitespace=nowarn", "-", stdin=diff)
        found = [path for path in Path(folder).rglob("*") if path.is_file()]
        return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def _git_diff(before: bytes, after: bytes, name: str = "x.py", quote: str = "true") -> bytes:
    with TemporaryDirectory() as folder:
        for side, data in (("a", before), ("b", after)):
            path = Path(folder, side, name)
            path.parent.mkdir(parents=True)
            path.write_bytes(data)
        config = ("-c", f"core.quotePath={quote}", "-c", "diff.noprefix=true")
        return _git(folder, *config, "diff", "--no-index", "--no-ext-diff", "a", "b")


def _git(folder: str, *arguments: str, stdin: bytes = b"") -> bytes:
    done = subprocess.run(
        ["git", *arguments],
        input=stdin,
        cwd=folder,
        check=False,
        capture_output=True,
        timeout=20,
        env={"GIT_CEILING_DIRECTORIES": folder, "PATH": "/usr/local/bin:/usr/bin:/bin"},
    )
    assert done.returncode < (1 if "apply" in arguments else 2), done.stderr
    return done.stdout


def _bytes(lines: list[str], end: bytes) -> bytes:
    return b"".join(line.encode() + end for line in lines)
