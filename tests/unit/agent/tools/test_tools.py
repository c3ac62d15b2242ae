"""Each tool on a scripted sandbox."""

import pytest

from turnout.agent.base import AgentConfig, Brief
from turnout.agent.tools.apply_patch import ApplyPatch
from turnout.agent.tools.base import AgentTool, Arguments, ToolContext, ToolOutput
from turnout.agent.tools.bounds import BOUNDS
from turnout.agent.tools.edit_file import EditFile
from turnout.agent.tools.list_files import ListFiles
from turnout.agent.tools.read_file import ReadFile
from turnout.agent.tools.run import Run
from turnout.agent.tools.surfaces import SURFACES
from turnout.core.ids import RunId
from turnout.core.runs import Connection
from turnout.errors import ToolError
from turnout.sandbox.base import Blob, CommandResult, ExitReason
from turnout.testing.sandbox import FakeFile, ScriptedSandbox, result

BRIEF = Brief(RunId("run-1"), "Fix it.", "guide", "pytest", None, ("tests/test_a.py",))


async def call(sandbox: ScriptedSandbox, tool: AgentTool, **arguments: str | int) -> ToolOutput:
    """Call a tool with arguments that were read already."""
    return await tool.call(Arguments(arguments), ToolContext(sandbox, BRIEF, AgentConfig()))


def workspace() -> ScriptedSandbox:
    """Return a small repository."""
    return ScriptedSandbox(
        {
            "src/a.py": "def f():\n    return 1\n",
            "src/empty.py": "",
            "bin/run.sh": FakeFile(b"echo a\n", 0o755),
            "logo.png": b"\x89PNG\x00",
            "tests/test_a.py": "def test(): pass\n",
        }
    )


async def test_files_are_listed_with_what_is_left_out() -> None:
    """At most two hundred names, and how many more there are."""
    sandbox = ScriptedSandbox({f"f{n:03}.py": "" for n in range(250)})
    lines = (await call(sandbox, ListFiles())).text.split("\n")
    assert (lines[0], lines[199]) == ("f000.py", "f199.py")
    assert lines[200].startswith("[50 more files match")


async def test_a_glob_that_matches_nothing_says_so() -> None:
    """The model learns that the pattern is a glob."""
    assert "glob `*.rs`" in (await call(workspace(), ListFiles(), pattern="*.rs")).text


@pytest.mark.cases
@pytest.mark.parametrize("path", ["src/a.py", "./src/a.py", "/repo/src/a.py", "src/../src/a.py"])
async def test_a_path_may_be_written_in_any_way(path: str) -> None:
    """Every form of one path is the one file."""
    assert (await call(workspace(), ReadFile(), path=path)).text == "def f():\n    return 1\n"


@pytest.mark.cases
@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("../x", "outside the repository"),
        ("/etc/passwd", "outside the repository"),
        ("", "empty"),
        ("a\0b", "no text"),
        ("a.py", "Did you mean `src/a.py`?"),
        ("src", "folder"),
        ("logo.png", "no text file"),
    ],
)
async def test_what_cannot_be_read_is_explained(path: str, hint: str) -> None:
    """The message says why, and names files that may have been meant."""
    with pytest.raises(ToolError) as refused:
        await call(workspace(), ReadFile(), path=path)
    assert hint in str(refused.value)


class Shut(ScriptedSandbox):
    """A sandbox with a link that leads nowhere."""

    async def read(self, path: str, *, offset: int = 0, limit: int = 1 << 20) -> Blob:
        """Read anything else."""
        if path == "out":
            raise ToolError("`out` leads out of the workspace.")
        return await super().read(path, offset=offset, limit=limit)


async def test_a_path_is_not_what_was_meant_by_itself() -> None:
    """What is listed and cannot be read is no mend for its own name."""
    with pytest.raises(ToolError) as refused:
        await call(Shut({"out": "", "outer": ""}), ReadFile(), path="out")
    assert refused.value.mend == "Did you mean `outer`?"


@pytest.mark.cases
async def test_an_empty_file_reads_as_empty() -> None:
    """No empty result, which models take for a failure."""
    assert (
        await call(workspace(), ReadFile(), path="src/empty.py")
    ).text == "[src/empty.py is empty]"


@pytest.mark.cases
@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ("\ufeffé\n".encode("utf-16-le"), "é\n"),
        (b"\xef\xbb\xbfx\n", "x\n"),
        (b"# caf\xe9\n", "# caf\\xe9\n"),
    ],
)
async def test_a_file_in_another_encoding_is_shown(data: bytes, shown: str) -> None:
    """UTF-16 by its mark; bytes that are no text as escapes, which edits understand."""
    assert (await call(ScriptedSandbox({"f": data}), ReadFile(), path="f")).text == shown


@pytest.mark.cases
async def test_a_huge_line_is_read_in_pieces() -> None:
    """Five megabytes in one line give a bounded page and the way to go on."""
    sandbox = ScriptedSandbox({"big": b"x" * 5_000_000 + b"\na\n"})
    first = (await call(sandbox, ReadFile(), path="big")).text
    assert len(first) <= BOUNDS["guide"].read_cap
    assert "offset=1 column=" in first
    assert (await call(sandbox, ReadFile(), path="big", offset=2)).text == "a\n"


async def test_an_edit_keeps_the_mode() -> None:
    """An executable file stays executable."""
    sandbox = workspace()
    await call(sandbox, EditFile(), path="bin/run.sh", old="a", new="b")
    assert sandbox.files["bin/run.sh"] == FakeFile(b"echo b\n", 0o755)


@pytest.mark.parametrize(
    ("path", "old", "hint"),
    [
        ("tests/test_a.py", "pass", "existing test file"),
        ("src/a.py", "", "exists and is not empty"),
        ("src/b.py", "x", "No such file"),
        ("../b.py", "", "outside"),
        (".git/config", "", ".git"),
    ],
)
async def test_an_edit_that_must_not_be_is_refused(path: str, old: str, hint: str) -> None:
    """Tests, overwriting and places outside are refused with the reason."""
    with pytest.raises(ToolError) as refused:
        await call(workspace(), EditFile(), path=path, old=old, new="y")
    assert hint in str(refused.value)


@pytest.mark.parametrize("path", ["src/new.py", "src/empty.py", "tests/test_new.py"])
async def test_an_empty_old_writes_a_new_file(path: str) -> None:
    """New files, new tests among them, and files that hold nothing yet."""
    sandbox = workspace()
    await call(sandbox, EditFile(), path=path, old="", new="x = 1\n")
    assert sandbox.files[path].data == b"x = 1\n"


async def test_a_patch_of_two_files_is_applied_whole() -> None:
    """Wrong line numbers are put right; a file is changed, another made."""
    sandbox = workspace()
    diff = (
        "--- a/src/a.py\n+++ b/src/a.py\n@@ -40 +40 @@\n def f():\n-    return 1\n+    return 2\n"
        "--- /dev/null\n+++ b/src/n.py\n@@ -0,0 +1 @@\n+x = 1\n"
    )
    assert not (await call(sandbox, ApplyPatch(), diff=diff)).is_error
    assert sandbox.files["src/a.py"].data == b"def f():\n    return 2\n"
    assert sandbox.files["src/n.py"].data == b"x = 1\n"


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("tests/test_a.py", "existing test file"),
        ("src/b.py", "src/b.py: "),
        ("../x.py", "outside"),
        ("src/a.py", "src/a.py: The old lines of a hunk are not in the file"),
    ],
)
async def test_a_patch_that_must_not_be_is_refused_whole(path: str, hint: str) -> None:
    """One bad section, and nothing changes; the message names the file."""
    sandbox = workspace()
    before = dict(sandbox.files)
    diff = (
        "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-def f():\n+def g():\n"
        f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-nowhere\n+y\n"
    )
    with pytest.raises(ToolError) as refused:
        await call(sandbox, ApplyPatch(), diff=diff)
    assert hint in str(refused.value)
    assert sandbox.files == before


async def test_a_patch_does_not_overwrite_a_file() -> None:
    """A new file is new."""
    diff = "--- /dev/null\n+++ b/src/a.py\n@@ -0,0 +1 @@\n+x = 1\n"
    with pytest.raises(ToolError, match=r"src/a\.py: It exists already"):
        await call(workspace(), ApplyPatch(), diff=diff)


class FullDisk(ScriptedSandbox):
    """A sandbox that has no room for one of its files."""

    async def write(
        self, path: str, data: bytes, *, mode: int | None = None, expect_sha256: str | None = None
    ) -> None:
        """Write any file but one."""
        if path == "full.py":
            raise ToolError("full.py cannot be written: No space left on device.")
        await super().write(path, data, mode=mode, expect_sha256=expect_sha256)


async def test_a_patch_that_fails_on_its_way_leaves_everything_as_it_was() -> None:
    """Files already written are put back, new ones removed, none deleted."""
    sandbox = FullDisk({"bin/run.sh": FakeFile(b"echo a\n", 0o750), "old.py": "a\n"})
    before = dict(sandbox.files)
    diff = (
        "*** Begin Patch\n*** Update File: bin/run.sh\n-echo a\n+echo b\n"
        "*** Add File: new.py\n+x\n*** Delete File: old.py\n*** Add File: full.py\n+x\n"
    )
    with pytest.raises(ToolError, match="No space left"):
        await call(sandbox, ApplyPatch(), diff=diff)
    assert sandbox.files == before


@pytest.mark.parametrize(
    ("diff", "hint"),
    [
        ("*** Add File: .git/hooks/x\n+x\n", "files of .git"),
        ("*** Update File: src/a.py\n*** Move to: src/empty.py\n", "two sections"),
        ("diff --git a/l b/l\nnew file mode 160000\n--- /dev/null\n+++ b/l\n@@\n+x\n", "160000"),
        ("".join(f"*** Add File: f{n}\n+x\n" for n in range(201)), "more than 200 files"),
    ],
)
async def test_a_patch_of_what_tools_do_not_change_is_refused(diff: str, hint: str) -> None:
    """Nothing is written."""
    sandbox = workspace()
    before = dict(sandbox.files)
    if hint == "two sections":
        diff += "*** Update File: src/empty.py\n+x\n"
    with pytest.raises(ToolError, match=hint):
        await call(sandbox, ApplyPatch(), diff=diff)
    assert sandbox.files == before


MOVED = "*** Update File: bin/run.sh\n*** Move to: bin/go.sh\n"
MADE = "*** Add File: bin/run.sh\n+new\n"
SWAPPED = MOVED.replace("bin/go.sh", "src/a.py") + (
    "*** Update File: src/a.py\n*** Move to: bin/run.sh\n"
)


@pytest.mark.parametrize(
    ("diff", "expected"),
    [
        (MOVED + MADE, {"bin/go.sh": b"echo a\n", "bin/run.sh": b"new\n"}),
        (MADE + MOVED, {"bin/go.sh": b"echo a\n", "bin/run.sh": b"new\n"}),
        ("*** Delete File: bin/run.sh\n" + MADE, {"bin/run.sh": b"new\n"}),
        (SWAPPED, {"bin/run.sh": b"def f():\n    return 1\n", "src/a.py": b"echo a\n"}),
    ],
)
async def test_a_path_that_one_section_frees_may_be_filled_by_another(
    diff: str, expected: dict[str, bytes]
) -> None:
    """In either order; two names may be swapped, and a new file has no old mode."""
    sandbox = workspace()
    await call(sandbox, ApplyPatch(), diff=f"*** Begin Patch\n{diff}")
    assert {path: sandbox.files[path].data for path in expected} == expected
    if "new" in diff:
        assert sandbox.files["bin/run.sh"].mode == 0o644


@pytest.mark.parametrize(
    "diff",
    [
        MOVED + MADE + "*** Update File: src/a.py\n*** Move to: bin/run.sh\n",
        MOVED + "*** Update File: bin/run.sh\n-echo a\n+echo b\n",
        MOVED + "*** Delete File: bin/run.sh\n",
        MOVED + MOVED.replace("go", "be"),
    ],
)
async def test_sections_that_want_different_things_of_a_path_are_refused(diff: str) -> None:
    """Which of them was meant cannot be known."""
    sandbox = workspace()
    before = dict(sandbox.files)
    with pytest.raises(ToolError, match="two sections"):
        await call(sandbox, ApplyPatch(), diff=f"*** Begin Patch\n{diff}")
    assert sandbox.files == before


async def test_a_moved_file_keeps_its_mode() -> None:
    """And may be changed on the way."""
    sandbox = workspace()
    diff = "*** Update File: bin/run.sh\n*** Move to: bin/go.sh\n-echo a\n+echo b\n"
    assert (await call(sandbox, ApplyPatch(), diff=diff)).text == "Changed bin/go.sh, bin/run.sh."
    assert sandbox.files["bin/go.sh"] == FakeFile(b"echo b\n", 0o755)
    assert "bin/run.sh" not in sandbox.files


async def test_a_command_gives_its_status_and_both_streams() -> None:
    """The status comes first; the command goes to bash as it is, with a time-out."""
    sandbox = workspace()
    sandbox.answer("make", result(b"out\n", b"err\n", code=2))
    assert (await call(sandbox, Run(), command="make 'a b'")).text == "exit 2\nout\n\nerr\n"
    assert (sandbox.commands[0].shell, sandbox.commands[0].timeout) == ("make 'a b'", 120.0)


@pytest.mark.cases
@pytest.mark.parametrize(
    ("reason", "hint"),
    [
        ("timeout", "timed out after 120 s"),
        ("output_limit", "printed too much"),
        ("oom", "too much memory"),
        ("not_started", "could not be started"),
        ("cancelled", "ended before"),
    ],
)
async def test_a_command_that_was_ended_says_why(reason: ExitReason, hint: str) -> None:
    """The limit is named, and what was printed stays."""
    sandbox = workspace()
    sandbox.answer("", result(b"half", code=None, reason=reason))
    text = (await call(sandbox, Run(), command="x")).text
    assert hint in text.partition("\n")[0]
    assert text.endswith("half")


async def test_why_a_connection_came_to_nothing_is_told_where_the_program_does_not() -> None:
    """Once, of this command alone, and nothing of connections that brought something."""
    sandbox = workspace()
    sandbox.asked.append(Connection("old.test", 443, False, "old.test: no"))

    def fail(_: object) -> CommandResult:
        sandbox.asked += [
            *[Connection("a.test", 443, False, "a.test: add it")] * 2,
            Connection("b.test", 443, False, "b.test: add it"),
            Connection("c.test", 443, True, "it broke off", received_bytes=9),
        ]
        return result(stderr=b"403 b.test: add it", code=56)

    sandbox.answer("curl", fail)
    told = (await call(sandbox, Run(), command="curl")).text
    assert told == "exit 56\n403 b.test: add it\nturnout: a.test: add it"


@pytest.mark.parametrize("command", ["", "  "])
async def test_a_command_that_is_none_is_refused(command: str) -> None:
    """Nothing reaches bash."""
    with pytest.raises(ToolError, match="empty"):
        await call(workspace(), Run(), command=command)


def test_surfaces_declare_the_tools_of_the_guides() -> None:
    """Four tools each, and three that only read; `finish` ends one of them, text the others."""
    names = {name: [tool.name for tool in one.specs] for name, one in SURFACES.items()}
    assert names == {
        "guide": ["list_files", "read_file", "run_tests", "apply_patch"],
        "shell": ["run", "read_file", "edit_file", "finish"],
        "files": ["read_file", "write_file", "run_command", "list_directory"],
        "review": ["list_files", "read_file", "search_files"],
    }
    assert (SURFACES["guide"].text_ends, SURFACES["shell"].text_ends) == (True, False)
