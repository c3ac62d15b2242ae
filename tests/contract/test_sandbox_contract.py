"""What every kind of sandbox does with files and patches."""

import hashlib

import pytest

from turnout.errors import SandboxError, ToolError
from turnout.sandbox.base import Command, Sandbox

pytestmark = pytest.mark.asyncio(loop_scope="module")

OUTSIDE = ["../x", "/etc/passwd", "a/../../x", "/", "..", "/repository/x", "/workspaces/x"]
ADD_LINE = b"--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,3 @@\n one\n+between\n two\n"


def new_file(path: str, mode: str = "100644") -> bytes:
    """Return a patch that adds one file."""
    lines = (
        f"diff --git a/{path} b/{path}",
        f"new file mode {mode}",
        "--- /dev/null",
        f"+++ b/{path}",
        "@@ -0,0 +1 @@",
        "+text",
        "",
    )
    return "\n".join(lines).encode()


async def test_what_was_written_is_read_back(sandbox: Sandbox) -> None:
    """Bytes, size, mode and hash of a new file are those that were written."""
    data = bytes(range(256)) * 5000
    await sandbox.write("deep/down/file.bin", data)
    blob = await sandbox.read("deep/down/file.bin", limit=len(data))
    assert blob.data == data
    assert (blob.size, blob.mode) == (len(data), 0o644)
    assert blob.sha256 == hashlib.sha256(data).hexdigest()


async def test_the_workspace_has_two_names(sandbox: Sandbox) -> None:
    """A path below either of them is the same file as the relative one."""
    await sandbox.write("/workspace/a/b", b"1")
    assert (await sandbox.read("a/b")).data == b"1"
    await sandbox.write("/repo/a/b", b"2")
    assert (await sandbox.read("/workspace/a/../a/b")).data == b"2"


async def test_a_file_larger_than_a_frame_goes_both_ways(sandbox: Sandbox) -> None:
    """The size of a frame is no limit of a file."""
    data = b"0123456789abcdef" * (1 << 20)
    await sandbox.write("large", data)
    assert (await sandbox.read("large", limit=len(data))).data == data


async def test_a_slice_carries_the_hash_of_the_whole_file(sandbox: Sandbox) -> None:
    """Offset and limit cut the data, not what is said about the file."""
    await sandbox.write("a", b"0123456789")
    blob = await sandbox.read("a", offset=3, limit=4)
    assert blob.data == b"3456"
    assert blob.size == 10
    assert blob.sha256 == hashlib.sha256(b"0123456789").hexdigest()
    assert (await sandbox.read("a", offset=99)).data == b""


async def test_writing_keeps_the_mode_unless_told(sandbox: Sandbox) -> None:
    """A program stays one; a mode that is given is set, without any set-uid bit."""
    await sandbox.write("tool", b"1", mode=0o4755)
    assert (await sandbox.read("tool")).mode == 0o755
    await sandbox.write("tool", b"2")
    assert (await sandbox.read("tool")).mode == 0o755


async def test_a_file_that_changed_is_not_overwritten(sandbox: Sandbox) -> None:
    """A write that expects another content fails and changes nothing."""
    await sandbox.write("a", b"new")
    old = hashlib.sha256(b"old").hexdigest()
    with pytest.raises(ToolError, match="not the file that was read"):
        await sandbox.write("a", b"mine", expect_sha256=old)
    assert (await sandbox.read("a")).data == b"new"
    await sandbox.write("a", b"mine", expect_sha256=hashlib.sha256(b"new").hexdigest())
    assert (await sandbox.read("a")).data == b"mine"


@pytest.mark.parametrize("path", OUTSIDE)
async def test_no_path_leaves_the_workspace(used: Sandbox, path: str) -> None:
    """Neither reading nor writing reaches beyond it."""
    with pytest.raises(ToolError):
        await used.read(path)
    with pytest.raises(ToolError):
        await used.write(path, b"x")


@pytest.mark.parametrize("path", ["", ".", "a\0b", "missing", "folder", "n" * 5000])
async def test_what_is_no_file_cannot_be_read(used: Sandbox, path: str) -> None:
    """The error is a tool's, and the sandbox goes on."""
    await used.write("folder/file", b"x")
    with pytest.raises(ToolError):
        await used.read(path)
    assert (await used.read("folder/file")).data == b"x"


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", ".GIT/config", "sub/.git/config", "d"])
async def test_git_and_folders_are_not_written_over(used: Sandbox, path: str) -> None:
    """Files of `.git` are not for tools, at any level and in any case."""
    await used.write("d/file", b"x")
    with pytest.raises(ToolError):
        await used.write(path, b"x")


GLOBS = {
    "**/*": ("a.py", "b.txt", "src/c.py", "src/deep/d.py"),
    "*.py": ("a.py", "src/c.py", "src/deep/d.py"),
    "src/*.py": ("src/c.py",),
    "src/**/*.py": ("src/c.py", "src/deep/d.py"),
    "src/**": ("src/c.py", "src/deep/d.py"),
    "[ab].*": ("a.py", "b.txt"),
    "[!a].???": ("b.txt",),
    "nothing": (),
}


async def test_globs_choose_files(sandbox: Sandbox) -> None:
    """`**` crosses folders, a pattern without a slash matches at any depth."""
    for path in ("a.py", "b.txt", "src/c.py", "src/deep/d.py"):
        await sandbox.write(path, b"x")
    assert {pattern: (await sandbox.list(pattern)).paths for pattern in GLOBS} == GLOBS


async def test_a_listing_is_cut_and_says_so(sandbox: Sandbox) -> None:
    """The total counts what the limit left out."""
    for number in range(5):
        await sandbox.write(f"{number}.txt", b"")
    listing = await sandbox.list(limit=2)
    assert listing.paths == ("0.txt", "1.txt")
    assert listing.total == 5


async def test_a_search_finds_lines(sandbox: Sandbox) -> None:
    """Hits carry path, line and text; a limit and a glob narrow them; long lines are cut."""
    await sandbox.write("a.py", b"first\nneedle one\n" + b"needle" + b"x" * 1000)
    await sandbox.write("b.txt", b"needle two")
    await sandbox.write("c.bin", b"\0needle")
    hits = await sandbox.search("need.e")
    assert [(hit.path, hit.line) for hit in hits] == [("a.py", 2), ("a.py", 3), ("b.txt", 1)]
    assert hits[0].text == "needle one"
    assert len(hits[1].text) == 400
    assert len(await sandbox.search("needle", limit=1)) == 1
    assert [hit.path for hit in await sandbox.search("needle", glob="*.txt")] == ["b.txt"]


async def test_a_false_expression_is_a_tools_error(sandbox: Sandbox) -> None:
    """The model reads what is wrong with it."""
    with pytest.raises(ToolError, match="no regular expression"):
        await sandbox.search("(")


async def test_a_patch_changes_adds_and_deletes(sandbox: Sandbox) -> None:
    """All that a patch names is done, and reported."""
    await sandbox.write("a.txt", b"one\ntwo\n")
    await sandbox.write("gone.txt", b"bye\n")
    gone = b"--- a/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n"
    result = await sandbox.apply_patch(ADD_LINE + gone + new_file("n/new.sh", "100755"))
    assert result.applied, result.message
    assert result.files == ("a.txt", "gone.txt", "n/new.sh")
    assert (await sandbox.read("a.txt")).data == b"one\nbetween\ntwo\n"
    assert (await sandbox.read("n/new.sh")).mode == 0o755
    assert (await sandbox.list()).paths == ("a.txt", "n/new.sh")


async def test_a_patch_that_fails_in_part_changes_nothing(sandbox: Sandbox) -> None:
    """One hunk that does not fit refuses the whole patch, and the message says what helps."""
    await sandbox.write("a.txt", b"one\ntwo\n")
    result = await sandbox.apply_patch(ADD_LINE + ADD_LINE.replace(b"a.txt", b"other.txt"))
    assert not result.applied
    assert result.files == ()
    assert "Read the files again" in result.message
    assert (await sandbox.read("a.txt")).data == b"one\ntwo\n"


async def test_a_patch_whose_place_has_moved_applies(sandbox: Sandbox) -> None:
    """Line numbers are a hint; the context decides."""
    moved = ADD_LINE.replace(b"-1,2 +1,3", b"-3,2 +3,3")
    await sandbox.write("a.txt", b"zero\n" * 10 + b"one\ntwo\n")
    assert (await sandbox.apply_patch(moved)).applied
    assert not (await sandbox.apply_patch(ADD_LINE)).applied


TOO_FAR = [
    new_file("../../tmp/x"),
    new_file("/tmp/x"),
    new_file("a/../../x"),
    new_file(".git/hooks/pre-commit"),
    new_file(".GIT/config"),
    new_file("sub/.git/config"),
    new_file("program", "104755"),
    new_file("module", "160000"),
    b'--- /dev/null\n+++ "b/.gi\\164/config"\n@@ -0,0 +1 @@\n+x\n',
    b"diff --git a/a.txt b/.git/x\nrename from a.txt\nrename to .git/x\n",
    b"diff --git a/a.txt b/a.txt\nold mode 100644\nnew mode 106755\n",
    b"no patch",
    b"",
]


async def test_a_patch_that_reaches_too_far_is_refused(sandbox: Sandbox) -> None:
    """The refusal is a result for the model, not an error, and nothing changes."""
    await sandbox.write("a.txt", b"one\ntwo\n")
    for patch in TOO_FAR:
        result = await sandbox.apply_patch(patch)
        assert not result.applied, patch
        assert result.message, patch
        assert (await sandbox.list()).paths == ("a.txt",), patch
        assert (await sandbox.read("a.txt")).mode == 0o644, patch


async def test_a_command_is_given_one_way(sandbox: Sandbox) -> None:
    """Neither both of arguments and shell nor none of them."""
    for command in (Command(), Command(("true",), shell="true")):
        with pytest.raises(SandboxError):
            await sandbox.run(command)
