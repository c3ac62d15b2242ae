"""What runs inside a sandbox, as far as it can be tried outside of one."""

import ast
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from turnout.sandbox.inside.find import glob_expression, main, matching_lines
from turnout.sandbox.inside.handover import resident_source
from turnout.sandbox.inside.processes import find_program

HANDED_IN = ("wire", "files", "processes", "command", "resident", "find")


def top_names(source: str) -> list[str]:
    """Return the classes and functions that a module defines."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    return [node.name for node in ast.parse(source).body if isinstance(node, kinds)]


def test_the_joined_agent_needs_nothing_of_ours() -> None:
    """The one file imports the standard library alone, and no name of it hides another."""
    source = resident_source().decode()
    assert not re.search(r"^(from|import) turnout", source, re.MULTILINE)
    names = top_names(source)
    assert len(names) == len(set(names))
    assert "Resident" in names


def test_the_joined_agent_runs_nowhere_else(tmp_path: Path) -> None:
    """Outside a sandbox it ends at once: there, ending strays would end everything."""
    script = tmp_path / "resident.py"
    script.write_bytes(resident_source())
    command = [sys.executable, "-ISE", str(script), "0", "1", "1", "1", "1"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    assert result.returncode == 1
    assert "only as process 1 of a sandbox" in result.stderr


@pytest.mark.parametrize("name", HANDED_IN)
def test_what_is_handed_in_runs_on_python_3_8(name: str) -> None:
    """Its grammar is that of 3.8, and annotations are not evaluated."""
    source = (files("turnout.sandbox.inside") / f"{name}.py").read_text()
    ast.parse(source, feature_version=(3, 8))
    assert "from __future__ import annotations" in source


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("*.py", "a/b/c.py", True),
        ("./src/*", "src/a", True),
        ("src/*", "src/a/b", False),
        ("**/test_?.py", "test_a.py", True),
        ("a[0-9]", "a5", True),
        ("a[!0-9]", "a5", False),
        ("a[", "a[", True),
        ("a.b", "axb", False),
        ("a", "a\n", False),
        ("**", "any/thing", True),
    ],
)
def test_globs(pattern: str, path: str, matches: bool) -> None:
    """A glob matches whole paths."""
    assert bool(re.compile(glob_expression(pattern)).match(path)) is matches


def test_lines_are_counted_from_one_and_cut() -> None:
    """What is shown of a line is no longer than people read."""
    hits = matching_lines(re.compile("b"), "a\nb" + "c" * 500 + "\n")
    assert hits == [(2, "b" + "c" * 399)]


def test_without_git_internal_folders_are_left_out(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A tree that is no repository is walked."""
    for path in ("a.py", "node_modules/x.py", "__pycache__/y.py", "b/c.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("x")
    main(["list", "*.py", "9"], str(tmp_path).encode())
    sys.stdout.flush()
    assert capfdbinary.readouterr().out == b"2\0a.py\0b/c.py\0"


def test_programs_are_found_as_a_shell_finds_them(tmp_path: Path) -> None:
    """Folders in order, what cannot be run is passed over, and nothing is an error."""
    first, second = tmp_path / "1", tmp_path / "2"
    for folder in (first, second):
        folder.mkdir()
        (folder / "tool").touch(mode=0o755 if folder == second else 0o644)
    search = f"{first}:{second}".encode()
    assert find_program(b"tool", search) == str(second / "tool").encode()
    assert find_program(b"./tool", search) == b"./tool"
    with pytest.raises(FileNotFoundError, match="command not found"):
        find_program(b"missing", search)
