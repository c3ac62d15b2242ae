"""The tools that change files, in a real sandbox: bytes, modes and links of every file compared."""

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from tests.sandboxes import started

from turnout.agent.base import AgentConfig, Brief
from turnout.agent.loop.dispatch import batches, carry_out
from turnout.agent.tools.apply_patch import ApplyPatch
from turnout.agent.tools.arguments import read_arguments
from turnout.agent.tools.base import AgentTool, ToolContext
from turnout.agent.tools.bounds import BOUNDS
from turnout.agent.tools.edit_file import EditFile
from turnout.agent.tools.read_file import ReadFile
from turnout.agent.tools.surfaces import SURFACES
from turnout.agent.tools.write_file import WriteFile
from turnout.core.clock import SystemClock
from turnout.core.ids import RunId, ToolCallId
from turnout.core.tools import ToolCall
from turnout.errors import ToolError
from turnout.sandbox.base import Command, Sandbox
from turnout.sandbox.bubblewrap import BubblewrapDriver

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.cases]

BRIEF = Brief(RunId("run-000000000001"), "Fix it.", "shell", "pytest", None, ())
Tree = Mapping[str, tuple[bytes, int]]
"""Content and mode of each file; of a link, where it leads and 0."""


@dataclass(frozen=True)
class Bench:
    """One sandbox, cleared for each case."""

    sandbox: Sandbox

    async def call(self, tool: AgentTool, **arguments: str | int) -> str:
        """Call a tool as the loop does; what it refuses is its result."""
        context = ToolContext(self.sandbox, BRIEF, AgentConfig())
        try:
            read = read_arguments(tool.spec, json.dumps(arguments))
            return (await tool.call(read, context)).text
        except ToolError as error:
            return f"refused: {error}"

    async def tree(self) -> Tree:
        """Return what the workspace holds."""
        find = await self.sandbox.run(
            Command(
                (
                    "find",
                    ".",
                    "-name",
                    ".git",
                    "-prune",
                    "-o",
                    "!",
                    "-type",
                    "d",
                    "-printf",
                    r"%P\0%y\0%l\0",
                )
            )
        )
        fields = find.stdout.decode().split("\0")[:-1]
        found: dict[str, tuple[bytes, int]] = {}
        for path, kind, target in zip(fields[::3], fields[1::3], fields[2::3], strict=True):
            if kind == "f":
                blob = await self.sandbox.read(path, limit=8 << 20)
                found[path] = (blob.data, blob.mode)
            else:
                found[path] = (target.encode(), 0)
        return found

    async def shell(self, line: str) -> str:
        """Run a line in the workspace and return what it printed."""
        done = await self.sandbox.run(Command(shell=line))
        assert done.ok, done.stderr
        return done.stdout.decode()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def only_sandbox(sandbox_state: Path) -> AsyncIterator[Sandbox]:
    """Start the sandbox of all cases."""
    async with started(BubblewrapDriver(sandbox_state)) as sandbox:
        yield sandbox


@pytest_asyncio.fixture(loop_scope="module")
async def bench(only_sandbox: Sandbox) -> AsyncIterator[Bench]:
    """Hand out an empty workspace."""
    bench = Bench(only_sandbox)
    yield bench
    await bench.shell("chmod -R u+w . && find . -mindepth 1 -delete; rm -rf /tmp/outside")


@dataclass(frozen=True)
class Edit:
    """One edit of whole lines, made by each tool."""

    before: bytes
    old: str
    new: str
    after: bytes | None
    """None: it is refused."""
    path: str = "f.txt"
    sent: str = ""
    """Path as the model writes it; empty: as it is."""
    mode: int = 0o644
    shell: str = ""
    """A line that is run before."""


TWO_BLOCKS = b"if a:\n    go()\nif b:\n        go()\n"
EDITS: Mapping[str, Edit] = {
    "crlf": Edit(b"a\r\nb\r\nc\r\n", "b", "z", b"a\r\nz\r\nc\r\n"),
    "crlf, several lines": Edit(b"a\r\nb\r\nc\r\n", "a\nb", "x\ny", b"x\r\ny\r\nc\r\n"),
    "no line break at the end": Edit(b"a\nb", "b", "c", b"a\nc"),
    "byte order mark": Edit(b"\xef\xbb\xbfx = 1\n", "x = 1", "x = 2", b"\xef\xbb\xbfx = 2\n"),
    "latin-1": Edit(b"x = 1\n# caf\xe9\n", "x = 1", "x = 2", b"x = 2\n# caf\xe9\n"),
    "stray byte": Edit(
        "x = 1\n# café ".encode() + b"\xe9\n",
        "x = 1",
        "x = ü",
        "x = ü\n# café ".encode() + b"\xe9\n",
    ),
    "utf-16": Edit(
        "\ufeffx\ny\n".encode("utf-16-le"), "y", "é", "\ufeffx\né\n".encode("utf-16-le")
    ),
    "executable": Edit(b"a\nb\n", "a", "c", b"c\nb\n", mode=0o755),
    "read-only": Edit(b"a\nb\n", "a", "c", b"c\nb\n", mode=0o444),
    "private": Edit(b"a\nb\n", "a", "c", b"c\nb\n", mode=0o600),
    "ambiguous": Edit(b"f\ng\nf\n", "f", "h", None),
    "dollars": Edit(
        b"log('a');\n", "log('a');", "log('$& $1 $$ $` $'');", b"log('$& $1 $$ $` $'');\n"
    ),
    "groups": Edit(b"old\n", "old", r"\1 \g<0> \n", rb"\1 \g<0> \n" + b"\n"),
    "odd breaks": Edit("a\u2028b\n\x0cc\n".encode(), "\x0cc", "d", "a\u2028b\nd\n".encode()),
    "lone cr": Edit(b"a\rb\nc\n", "c", "d", b"a\rb\nd\n"),
    "mixed breaks": Edit(b"a\r\nb\nc\r\n", "b", "z", b"a\r\nz\nc\r\n"),
    "the other of two indents": Edit(
        TWO_BLOCKS,
        "if b:\n        go()",
        "if b:\n        stop()",
        b"if a:\n    go()\nif b:\n        stop()\n",
    ),
    "neither of two indents": Edit(b"  go()\n    go()\n", "     go()\n", "     stop()\n", None),
    "other indent": Edit(
        b"def f():\n    if a:\n        return 1\n",
        "if a:\n    return 1",
        "if a:\n    return 2",
        b"def f():\n    if a:\n        return 2\n",
    ),
    "spaces for a tab": Edit(b"a:\n\techo 1\n", "    echo 1", "    echo 2", b"a:\n\techo 2\n"),
    "plain quotes for others": Edit(
        "s = “a”  # one\n".encode(), 's = "a"  # one', 's = "a"  # two', "s = “a”  # two\n".encode()
    ),
    "anchors alone": Edit(
        "".join(f"def f{n}():\n    x = {n}\n    return x\n" for n in range(200)).encode(),
        "def f10():\n    y = 0\n    return x",
        "pass",
        None,
    ),
    "huge line": Edit(b"x" * 5_000_000 + b"\na\n", "a", "z", b"x" * 5_000_000 + b"\nz\n"),
    "nul": Edit(b"a\x00\nb\n", "b", "c", b"a\x00\nc\n"),
    "attributes of the repository": Edit(
        b"a\nb\n",
        "b",
        "$Id$",
        b"a\n$Id$\n",
        shell="git init -q; echo '* text eol=crlf ident' > .gitattributes",
    ),
    "outside": Edit(b"a\n", "a", "b", None, sent="../tmp/outside/t.txt"),
    "absolute, outside": Edit(b"a\n", "a", "b", None, sent="/tmp/outside/t.txt"),
    "through a link, outside": Edit(
        b"a\n", "a", "b", None, sent="ln/t.txt", shell="ln -s /tmp/outside ln"
    ),
    "through a link, inside": Edit(b"a\n", "a", "b", b"b\n", sent="ln", shell="ln -s f.txt ln"),
    "through a folder, inside": Edit(
        b"a\n", "a", "b", b"b\n", "d/f.txt", "ln/f.txt", shell="ln -s d ln"
    ),
    "absolute, inside": Edit(b"a\n", "a", "b", b"b\n", sent="/repo/f.txt"),
    "dot": Edit(b"a\n", "a", "b", b"b\n", sent="./f.txt"),
    "a device": Edit(b"a\n", "a", "b", None, sent="/dev/zero"),
    "a fifo": Edit(b"a\n", "a", "b", None, sent="ff", shell="mkfifo ff"),
    "a folder": Edit(b"a\n", "a", "b", None, "d/f.txt", "d"),
    "brackets": Edit(b"a\n", "a", "b", b"b\n", "app/[id]/page.tsx"),
    "a b/ in the name": Edit(b"a\n", "a", "b", b"b\n", "x b/y.txt"),
    "a dash": Edit(b"a\n", "a", "b", b"b\n", "-n.txt"),
    "quotes": Edit(b"a\n", "a", "b", b"b\n", "my 'dir'/a \"b\".txt"),
    "accents": Edit(b"a\n", "a", "b", b"b\n", "café.txt"),
    "a tab": Edit(b"a\n", "a", "b", b"b\n", "a\tb"),
    "folders called a and b": Edit(b"a\n", "a", "b", b"b\n", "a/b/a.txt"),
}


@pytest.mark.parametrize("tool", [EditFile(), ApplyPatch()], ids=["edit_file", "apply_patch"])
@pytest.mark.parametrize("name", EDITS)
async def test_an_edit_is_exact_or_refused(bench: Bench, tool: AgentTool, name: str) -> None:
    """Every byte and mode is right after it, or nothing has changed."""
    edit = EDITS[name]
    await bench.sandbox.write(edit.path, edit.before, mode=edit.mode)
    await bench.shell(f"mkdir /tmp/outside; echo a > /tmp/outside/t.txt; {edit.shell}")
    before = await bench.tree()
    said = await bench.call(tool, **arguments_of(edit, tool))
    tree = await bench.tree()
    expected = dict(before)
    if edit.after is not None:
        expected[edit.path] = (edit.after, edit.mode)
    assert said.startswith("refused: ") == (edit.after is None), said
    assert tree == expected
    assert await bench.shell("cat /tmp/outside/t.txt") == "a\n"


def arguments_of(edit: Edit, tool: AgentTool) -> dict[str, str]:
    """Return the call of one tool or the other."""
    path = edit.sent or edit.path
    if tool.spec.name == "edit_file":
        return {"path": path, "old": edit.old, "new": edit.new}
    old, new = (path, path) if path.startswith("/") else (f"a/{path}", f"b/{path}")
    lines = [f"-{line}" for line in edit.old.removesuffix("\n").split("\n")]
    lines += [f"+{line}" for line in edit.new.removesuffix("\n").split("\n")]
    return {"diff": "\n".join([f"--- {old}", f"+++ {new}", "@@", *lines, ""])}


async def test_python_and_make_accept_what_was_edited_in_another_indent(bench: Bench) -> None:
    """Not only the bytes: the programs that read them agree."""
    await bench.sandbox.write("a.py", b"def f(a):\n\tif a:\n\t\treturn 1\n\treturn 0\n")
    old, new = "if a:\n    return 1\nreturn 0", "if a:\n    return 2\nreturn 0"
    said = await bench.call(EditFile(), path="a.py", old=old, new=new)
    assert "indented otherwise" in said
    assert await bench.shell("python3 -c 'import a; print(a.f(1))'") == "2\n"


async def test_a_patch_of_many_files_is_all_or_nothing(bench: Bench) -> None:
    """Made, deleted, moved, changed and given a mode; or, where the last is wrong, none of it."""
    await bench.sandbox.write("bin/run.sh", b"#!/bin/sh\necho a\n", mode=0o755)
    await bench.sandbox.write("gone.txt", b"x\n")
    await bench.sandbox.write("tool", b"t\n", mode=0o640)
    before = await bench.tree()
    patch = (
        "--- /dev/null\n+++ b/new/made.py\n@@ -0,0 +1,2 @@\n+x = 1\n+y = 2\n"
        "--- a/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        "diff --git a/bin/run.sh b/bin/go.sh\nrename from bin/run.sh\nrename to bin/go.sh\n"
        "--- a/bin/run.sh\n+++ b/bin/go.sh\n@@ -1,2 +1,2 @@\n #!/bin/sh\n-echo a\n+echo b\n"
        "diff --git a/tool b/tool\nold mode 100644\nnew mode 100755\n"
    )
    wrong = patch + "--- a/none\n+++ b/none\n@@ -1 +1 @@\n-a\n+b\n"
    assert "none: " in await bench.call(ApplyPatch(), diff=wrong)
    assert await bench.tree() == before
    assert (await bench.call(ApplyPatch(), diff=patch)).startswith("Changed new/made.py, ")
    assert await bench.tree() == {
        "new/made.py": (b"x = 1\ny = 2\n", 0o644),
        "bin/go.sh": (b"#!/bin/sh\necho b\n", 0o755),
        "tool": (b"t\n", 0o750),
    }


async def test_a_patch_that_cannot_be_written_changes_nothing(bench: Bench) -> None:
    """The file before the one that fails is put back."""
    await bench.sandbox.write("a.txt", b"a\n", mode=0o750)
    await bench.sandbox.write("file", b"f\n")
    before = await bench.tree()
    patch = "*** Update File: a.txt\n-a\n+b\n*** Add File: made.txt\n+x\n*** Add File: file/x\n+x\n"
    assert (await bench.call(ApplyPatch(), diff=patch)).startswith("refused: ")
    assert await bench.tree() == before


async def test_a_link_is_not_moved_by_a_patch(bench: Bench) -> None:
    """It would come out as a copy of what it leads to; it may be deleted."""
    await bench.sandbox.write("f", b"x\n")
    await bench.shell("ln -s f ln")
    before = await bench.tree()
    moved = "*** Begin Patch\n*** Update File: ln\n*** Move to: other\n-x\n+y\n"
    assert "a link" in await bench.call(ApplyPatch(), diff=moved)
    assert await bench.tree() == before
    await bench.call(ApplyPatch(), diff="*** Delete File: ln\n")
    assert await bench.tree() == {"f": (b"x\n", 0o644)}


async def test_edits_of_one_turn_are_all_there(bench: Bench) -> None:
    """Each works on what the one before it left, and results come in the order of the calls."""
    numbers = "".join(f"{n}\n" for n in range(1, 101))
    await bench.sandbox.write("n.txt", numbers.encode())
    surface = SURFACES["shell"]
    calls = [
        ToolCall(
            ToolCallId(f"call-{old}"),
            "edit_file",
            json.dumps({"path": "n.txt", "old": old, "new": new}),
        )
        for old, new in (("\n50\n", "\nFIFTY\n"), ("none", "x"), ("\n75\n", "\nSEVENTY\n"))
    ]
    context = ToolContext(bench.sandbox, BRIEF, AgentConfig())
    done = [
        one
        for batch in batches(surface, calls)
        for one in await carry_out(batch, surface, context, SystemClock())
    ]
    assert [one.call for one in done] == calls
    assert [one.output.is_error for one in done] == [False, True, False]
    after = numbers.replace("\n50\n", "\nFIFTY\n").replace("\n75\n", "\nSEVENTY\n")
    assert await bench.tree() == {"n.txt": (after.encode(), 0o644)}


def link_patch(path: str, old: str | None, new: str | None) -> str:
    """Return what git says of a link that is made, changed or removed."""
    head = [f"diff --git a/{path} b/{path}"]
    head.append("index 1a2b3c4..5d6e7f8 120000" if old and new else "")
    head.append("" if old else "new file mode 120000")
    head.append("" if new else "deleted file mode 120000")
    names = [
        f"--- a/{path}" if old else "--- /dev/null",
        f"+++ b/{path}" if new else "+++ /dev/null",
    ]
    sides = [f"-{old}" if old else "", f"+{new}" if new else ""]
    hunk = [f"{side}\n\\ No newline at end of file" for side in sides if side]
    lines = [*filter(None, head), *names, f"@@ -{int(bool(old))} +{int(bool(new))} @@", *hunk]
    return "\n".join([*lines, ""])


async def test_links_are_made_changed_and_removed_as_links(bench: Bench) -> None:
    """What they lead to stays as it is, also where it is missing."""
    await bench.sandbox.write("f", b"x\n")
    for old, new, tree in (
        (None, "../f", (b"../f", 0)),
        ("../f", "missing", (b"missing", 0)),
        ("missing", None, None),
    ):
        said = await bench.call(ApplyPatch(), diff=link_patch("d/ln", old, new))
        assert said == "Changed d/ln."
        assert await bench.tree() == {"f": (b"x\n", 0o644), **({"d/ln": tree} if tree else {})}


@pytest.mark.parametrize(
    ("path", "old", "new", "said"),
    [
        ("ln", None, "../etc/passwd", "would leave the repository"),
        ("ln", None, "/repo/f", "would leave the repository"),
        ("ln", None, "out/x", "would leave the repository"),
        ("out/ln", None, "f", "would leave the repository"),
        ("ln", None, ".git/config", "of .git"),
        ("f", None, "x", "exists already"),
        ("f", "x", "y", "is no link"),
        ("known", None, "y", "exists already"),
        ("known", "other", "y", "not in the file"),
        ("known", "other", None, "not those of the file"),
        ("known", "f", "a\n+b", "leads to one path"),
    ],
)
async def test_a_link_that_leaves_or_is_none_is_refused(
    bench: Bench, path: str, old: str | None, new: str | None, said: str
) -> None:
    """Nothing is changed."""
    await bench.sandbox.write("f", b"x\n")
    await bench.shell("ln -s f known; ln -s /tmp out")
    before = await bench.tree()
    answer = await bench.call(ApplyPatch(), diff=link_patch(path, old, new))
    assert answer.startswith("refused: ")
    assert said in answer
    assert await bench.tree() == before


@pytest.mark.parametrize("path", ["../x", "/etc/x", "ln/x", ".git/hooks/x", "d", "ff", "x\0y"])
async def test_a_file_is_not_written_where_none_may_be(bench: Bench, path: str) -> None:
    """Outside, through a link that leaves, among git's own, over a folder or a fifo."""
    await bench.shell("ln -s /tmp ln; mkdir d; mkfifo ff")
    before = await bench.tree()
    said = await bench.call(WriteFile(), path=path, content="x")
    assert said.startswith("refused: ")
    assert await bench.tree() == before


async def test_a_file_is_written_whole_as_it_was_sent(bench: Bench) -> None:
    """The mode stays, line ends and marks are those that were sent."""
    await bench.sandbox.write("run.sh", b"\xef\xbb\xbfa\r\nb\r\n", mode=0o755)
    await bench.call(WriteFile(), path="run.sh", content="$(id) `id` é\n")
    assert await bench.tree() == {"run.sh": ("$(id) `id` é\n".encode(), 0o755)}


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("empty", "is empty"),
        ("big", "goes on; read it with offset=1 column="),
        ("odd", "a\u2028b\x0cc"),
        ("/dev/zero", "outside"),
        ("zero", "leaves the workspace"),
        ("ff", "not a regular file"),
        ("d", "folder"),
    ],
)
async def test_a_read_of_anything_odd_is_bounded_and_says_something(
    bench: Bench, path: str, said: str
) -> None:
    """Nothing hangs, nothing is empty."""
    await bench.sandbox.write("big", b"x" * 5_000_000 + b"\na\n")
    await bench.sandbox.write("odd", "a\u2028b\x0cc\n".encode())
    await bench.shell("touch empty; ln -s /dev/zero zero; mkfifo ff; mkdir d")
    text = await bench.call(ReadFile(), path=path)
    assert said in text
    assert len(text) <= BOUNDS[BRIEF.surface].read_cap
