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

from turnout.agent.tools.patch_place import changes, patched, render
from turnout.agent.tools.patch_text import FilePatch, parse_patch

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


@given(versions(), st.booleans(), st.booleans())
def test_a_mangled_diff_gives_the_new_version(
    pair: tuple[list[str], list[str]], crlf: bool, fenced: bool
) -> None:
    """Wrong counts, a fence, prose and the file's own line ends do not matter."""
    old, new = pair
    diff = diff_of(old, new)
    if not diff or not old:
        return
    diff = re.sub(r"(?m)^@@ -(\d+),[1-9]\d* \+.*", r"@@ -\1,77 +5,99 @@", diff)
    if fenced:
        diff = f"The fix:\n```diff\n{diff}\n```\nDone.\n"
    end = b"\r\n" if crlf else b"\n"
    (patch,) = parse_patch(diff)
    result = patched(changes(_bytes(old, end), patch))
    assert result == _bytes(new, end)


@settings(max_examples=25, deadline=None)
@given(versions(), st.booleans(), st.booleans())
def test_git_applies_what_is_rendered(
    pair: tuple[list[str], list[str]], crlf: bool, unterminated: bool
) -> None:
    """The rendered diff makes git arrive at the same bytes that we computed."""
    old, new = pair
    diff = diff_of(old, new)
    if not diff or not old:
        return
    end = b"\r\n" if crlf else b"\n"
    before = _bytes(old, end)
    if unterminated:
        before = before.removesuffix(end)
    (patch,) = parse_patch(diff)
    lines = changes(before, patch)
    assert git_applied({"x.py": before}, render(patch, lines)) == {"x.py": patched(lines)}


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
def test_git_changes_the_one_file_of_an_odd_name(name: str) -> None:
    """Whatever a path is made of, the file of that name is changed and nothing else."""
    patch = FilePatch(name, name, parse_patch(diff_of(["a"], ["b"]))[0].hunks)
    diff = render(patch, changes(b"a\n", patch))
    assert git_applied({name: b"a\n", "other": b"a\n"}, diff) == {name: b"b\n", "other": b"a\n"}
    assert parse_patch(diff.decode())[0].old == name


def test_git_makes_deletes_and_renames_what_is_rendered() -> None:
    """New, deleted, moved and moved-and-changed files, in the form without line numbers."""
    files = {"gone.py": b"a\n", "old.py": b"a\nb\n", "kept.py": b"a"}
    text = (
        "*** Begin Patch\n*** Add File: made.py\n+x\n*** Delete File: gone.py\n"
        "*** Update File: old.py\n*** Move to: new.py\n@@\n-b\n+c\n"
        "*** Update File: kept.py\n@@\n a\n+b\n*** End Patch\n"
    )
    sections = [
        render(patch, changes(files.get(patch.old or "", b""), patch))
        for patch in parse_patch(text)
    ]
    assert git_applied(files, b"".join(sections)) == {
        "made.py": b"x\n",
        "new.py": b"a\nc\n",
        "kept.py": b"a\nb",
    }


def git_applied(files: Mapping[str, bytes], diff: bytes) -> dict[str, bytes]:
    """Return what `git apply` makes of files."""
    with TemporaryDirectory() as folder:
        for name, data in files.items():
            Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
            Path(folder, name).write_bytes(data)
        subprocess.run(
            ["git", "apply", "--whitespace=nowarn", "-"],
            input=diff,
            cwd=folder,
            check=True,
            timeout=20,
            env={"GIT_CEILING_DIRECTORIES": folder, "PATH": "/usr/local/bin:/usr/bin:/bin"},
        )
        found = [path for path in Path(folder).rglob("*") if path.is_file()]
        return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def _bytes(lines: list[str], end: bytes) -> bytes:
    return b"".join(line.encode() + end for line in lines)
