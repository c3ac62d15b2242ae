"""Files of a sandbox."""

import pytest

from turnout.errors import ToolError
from turnout.sdk import FileInfo, Sandbox
from turnout.testing.sandbox import FakeFile, ScriptedSandbox, result


@pytest.mark.parametrize("path", ["calc.py", "/workspace/calc.py", "/repo/calc.py", "./calc.py"])
def test_a_file_of_the_workspace_has_these_names(sandbox: Sandbox, path: str) -> None:
    """Absolute, or relative to it."""
    assert sandbox.files.read(path) == "add = int.__sub__\n"
    assert sandbox.files.read_bytes(path) == b"add = int.__sub__\n"


def test_what_was_written_can_be_read(sandbox: Sandbox) -> None:
    """Text as UTF-8, bytes as they are."""
    sandbox.files.write("/workspace/new/é.txt", "naïve\n")
    assert sandbox.files.read_text("new/é.txt") == "naïve\n"
    sandbox.files.write("raw", b"\xff")
    assert sandbox.files.read_bytes("raw") == b"\xff"


def test_bytes_that_are_no_text_are_shown_or_refused(
    sandbox: Sandbox, inner: ScriptedSandbox
) -> None:
    """A model that opens a picture reads something; who writes back asks to be told."""
    inner.files["latin"] = FakeFile(b"caf\xe9")
    assert sandbox.files.read("latin") == "caf\\xe9"
    assert sandbox.files.read_text("latin", "latin-1") == "café"
    with pytest.raises(ToolError, match="latin cannot be read: 'utf-8' codec"):
        sandbox.files.read_text("latin", errors="strict")


def test_a_file_that_is_not_there_is_named(sandbox: Sandbox) -> None:
    """With the reason."""
    with pytest.raises(ToolError, match=r"absent\.py cannot be read: No such file"):
        sandbox.files.read("absent.py")


@pytest.mark.parametrize("path", ["", "a\0b", "\ud83d"])
def test_a_path_that_cannot_be_is_refused(sandbox: Sandbox, path: str) -> None:
    """A model may give anything; the sandbox is not even asked."""
    with pytest.raises(ToolError, match="cannot be read"):
        sandbox.files.read(path)
    with pytest.raises(ToolError, match="cannot be looked for"):
        sandbox.files.exists(path)


def test_text_that_cannot_be_utf8_is_not_written(sandbox: Sandbox) -> None:
    """Half a character is a mistake of whoever made it."""
    with pytest.raises(ToolError, match="cannot be UTF-8"):
        sandbox.files.write("a", "\ud83d")


@pytest.mark.parametrize("path", ["/tmp/$(id); rm -rf *", "/tmp/-n", "../x", "/workspacex"])
def test_a_path_elsewhere_is_an_argument_and_never_part_of_a_line(
    sandbox: Sandbox, inner: ScriptedSandbox, path: str
) -> None:
    """No quoting can go wrong where there is none."""
    inner.answer("head", result(b"hello"))
    assert sandbox.files.read(path) == "hello"
    sandbox.files.write(path, "x")
    sandbox.files.exists(path)
    sandbox.files.remove(path)
    sandbox.files.make_dir(path)
    full = path if path.startswith("/") else f"/workspace/{path}"
    assert all(command.argv[4] == full for command in inner.commands)
    assert not any(path in command.argv[2] for command in inner.commands)
    assert inner.inputs[1] == b"x"


def test_what_a_program_of_ours_met_is_said(sandbox: Sandbox, inner: ScriptedSandbox) -> None:
    """In the same words as for files of the workspace."""
    inner.answer("head", result(code=21), result(code=22))
    with pytest.raises(ToolError, match="/etc/x cannot be read: No such file or directory"):
        sandbox.files.read("/etc/x")
    with pytest.raises(ToolError, match="/etc cannot be read: it is a folder"):
        sandbox.files.read("/etc")
    inner.answer("mkdir", result(stderr=b"sh: 4: cannot create /etc/x: Read-only", code=2))
    with pytest.raises(ToolError, match="/etc/x cannot be written: sh: 4: cannot create"):
        sandbox.files.write("/etc/x", "")


def test_a_folder_is_listed_by_name(sandbox: Sandbox, inner: ScriptedSandbox) -> None:
    """Whatever order the system has them in, and whatever bytes."""
    inner.answer("scandir", result(b"file\x005\0b\xff\0folder\x000\0a\0odd\0x\0c\0"))
    assert sandbox.files.list() == (
        FileInfo("a", "/workspace/a", "folder", 0),
        FileInfo("b\udcff", "/workspace/b\udcff", "file", 5),
        FileInfo("c", "/workspace/c", "other", 0),
    )


def test_a_file_exists_or_not(sandbox: Sandbox, inner: ScriptedSandbox) -> None:
    """Which is no error."""
    inner.answer(r"\[ -e", result(), result(code=1))
    assert sandbox.files.exists("calc.py")
    assert not sandbox.files.exists("absent.py")
