"""What runs inside a sandbox, as far as it can be tried outside of one."""

import ast
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from turnout.sandbox.inside import relocate
from turnout.sandbox.inside.find import glob_expression, main, matching_lines
from turnout.sandbox.inside.handover import resident_source
from turnout.sandbox.inside.resident.processes import find_program

INSIDE = files("turnout.sandbox.inside")
AGENT = (
    "wire",
    *(f"resident/{name}" for name in ("files", "processes", "command", "memory", "loop", "start")),
)


def top_names(source: str) -> list[str]:
    """Return what a module defines: classes, functions and values."""
    names = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [n.id for n in ast.walk(node.targets[0]) if isinstance(n, ast.Name)]
    return [name for name in names if name != "__all__"]


def test_the_joined_agent_needs_nothing_of_ours() -> None:
    """The one file imports the standard library alone, and no name of it hides another."""
    source = resident_source().decode()
    assert not re.search(r"^(from|import) turnout", source, re.MULTILINE)
    names = top_names(source)
    assert len(names) == len(set(names))
    assert "Resident" in names


def test_the_agent_imports_no_more_than_it_needs() -> None:
    """Each module costs the start of every sandbox; none of these imports any other."""
    nodes = ast.walk(ast.parse(resident_source()))
    imported = {
        alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names
    }
    small = {"_ctypes", "_socket", "errno", "resource", "select", "struct"}
    assert imported <= small | {"os", "stat", "sys", "time"}
    froms = {
        node.module
        for node in ast.walk(ast.parse(resident_source()))
        if isinstance(node, ast.ImportFrom)
    }
    assert froms == {"__future__"}


def test_the_agent_knows_no_wall_clock() -> None:
    """Whoever sets the clock of the machine ends no command by that."""
    calls = re.findall(r"\btime\.(\w+)", resident_source().decode())
    assert set(calls) == {"monotonic", "monotonic_ns"}


def test_the_joined_agent_runs_nowhere_else(tmp_path: Path) -> None:
    """Outside a sandbox it ends at once: there, ending strays would end everything."""
    script = tmp_path / "resident.py"
    script.write_bytes(resident_source())
    command = [sys.executable, "-ISE", str(script), "in=0", "out=1"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    assert result.returncode == 1
    assert "only as process 1 of a sandbox" in result.stderr


@pytest.mark.parametrize("name", [*AGENT, "find", "relocate"])
def test_what_is_handed_in_runs_on_python_3_8(name: str) -> None:
    """Its grammar is that of 3.8, and annotations are not evaluated."""
    source = INSIDE.joinpath(f"{name}.py").read_text()
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
    tmp_path: Path,
    capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A tree that is no repository is walked."""
    for path in ("a.py", "node_modules/x.py", "__pycache__/y.py", "b/c.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("x")
    monkeypatch.chdir(tmp_path)
    main(["list", "*.py", "9"])
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


def test_scripts_of_a_copied_environment_start_its_own_interpreter(tmp_path: Path) -> None:
    """Those that pip makes, short or long; links, programs and other scripts stay."""
    venv, project, repo = tmp_path / "venv", tmp_path / "project", tmp_path / "repo"
    made = {
        venv / "bin" / "tool": b"#!/old/.venv/bin/python3\nimport sys\n",
        venv / "bin" / "long": b"#!/bin/sh\n'''exec' \"/old/bin/python\" \"$0\" \"$@\"\n' '''\nx\n",
        venv / "bin" / "other": b"#!/bin/sh\n/old/.venv/bin/python\n",
        venv / "bin" / "system": b"#!/usr/bin/python3\n",
        venv / "bin" / "binary": b"\x7fELF",
        project / "bin" / "own": b"#!/venv/bin/python\n",
        venv / "lib" / "python3.9" / "site-packages" / "p.pth": (
            b"import site; site.addsitedir('/project/site')\n"
        ),
        project / "site" / "q.pth": b"/repo/src\n/repository\n",
    }
    for path, content in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (venv / "bin" / "python").symlink_to("/old/.venv/bin/python")
    relocate.main(str(venv), str(project), str(repo))
    own = f"#!{venv}/bin/python"
    assert [path.read_text("latin-1") for path in made] == [
        f"{own}3\nimport sys\n",
        f"{own}\nx\n",
        "#!/bin/sh\n/old/.venv/bin/python\n",
        "#!/usr/bin/python3\n",
        "\x7fELF",
        f"{own}\n",
        f"import site; site.addsitedir('{project}/site')\n",
        f"{repo}/src\n/repository\n",
    ]


def test_a_script_whose_interpreter_lies_far_away_starts_it(tmp_path: Path) -> None:
    """The kernel reads no more than the start of a first line."""
    venv = tmp_path / ("deep" * 40)
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(sys.executable)
    script = venv / "bin" / "tool"
    mended = relocate.mended_script(b"#!/old/bin/python\nprint('ran')\n", bytes(venv))
    assert mended.startswith(b"#!/bin/sh\n")
    script.write_bytes(mended)
    script.chmod(0o755)
    assert subprocess.run([script], capture_output=True, check=True, timeout=20).stdout == b"ran\n"
    assert relocate.mended_script(mended, b"/v") == b"#!/v/bin/python\nprint('ran')\n"
