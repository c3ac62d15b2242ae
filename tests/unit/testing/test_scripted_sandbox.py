"""The scripted sandbox, beyond what every sandbox does."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.core.ids import RunId
from turnout.errors import RepositoryError, SandboxDiedError
from turnout.sandbox.base import (
    BaseSpec,
    Command,
    CommandResult,
    Connection,
    Egress,
    HostRule,
    Limits,
)
from turnout.testing.sandbox import FakeFile, ScriptedDriver, ScriptedSandbox, result
from turnout.testing.sandbox.patching import apply_to, difference

RUN = RunId("run-000000000001")
SPEC = BaseSpec("/r", "c" * 40)
LINES = st.lists(st.sampled_from([b"a", b"b", b"", b"-x", b"+y", b"@@"]), max_size=8)
FILES = st.dictionaries(st.sampled_from(["a", "b/c", "d"]), LINES.map(b"\n".join))


async def test_commands_are_answered_in_order() -> None:
    """The last answer stays, other commands succeed silently, and all are recorded."""
    sandbox = ScriptedSandbox()
    sandbox.answer("pytest", result(b"1 failed", code=1), result(b"1 passed"))
    codes = [(await sandbox.run(Command(shell="pytest -q"))).exit.code for _ in range(3)]
    assert codes == [1, 0, 0]
    assert (await sandbox.run(Command(("ls", "-a")))).ok
    assert [call.subject for call in sandbox.calls] == ["pytest -q"] * 3 + ["ls -a"]


async def test_the_latest_matching_answer_wins() -> None:
    """A test may answer one command more precisely than its set-up did."""
    sandbox = ScriptedSandbox()
    sandbox.answer(".", result(b"any"))
    sandbox.answer("^git", result(b"git"))
    assert (await sandbox.run(Command(("git", "log")))).stdout == b"git"
    assert (await sandbox.run(Command(("ls",)))).stdout == b"any"


async def test_an_answer_may_change_files() -> None:
    """A function stands for a command with an effect."""
    sandbox = ScriptedSandbox({"a": "1"})

    def build(command: Command) -> CommandResult:
        sandbox.files["out"] = FakeFile((command.shell or "").encode(), 0o755)
        return result()

    sandbox.answer("make", build)
    await sandbox.run(Command(shell="make all", stdin=b"input"))
    assert (await sandbox.read("out")).data == b"make all"
    assert sandbox.inputs == [b"input"]


async def test_a_dead_sandbox_says_so() -> None:
    """Tests can let a sandbox die at any time."""
    sandbox = ScriptedSandbox({"a": "1"})
    sandbox.die("the machine burned")
    with pytest.raises(SandboxDiedError, match="burned"):
        await sandbox.read("a")


async def test_a_driver_makes_equal_sandboxes() -> None:
    """Each has the files and the answers, and what was asked for is recorded."""
    driver = ScriptedDriver({"a": "1"}, script=lambda each: each.answer("x", result(code=3)))
    base = await driver.prepare(SPEC)
    first = await driver.create(RUN, base, Limits())
    second = await driver.create(RUN, base, Limits(pids=9))
    await first.write("a", b"2")
    assert (await second.read("a")).data == b"1"
    assert (await second.run(Command(shell="x"))).exit.code == 3
    assert [made.limits.pids for made in driver.created] == [512, 9]
    assert driver.prepared == [SPEC]
    assert await driver.reap(frozenset()) == (RUN,)
    assert first.closed
    assert second.closed


async def test_what_a_sandbox_was_created_with_is_recorded() -> None:
    """Egress and layer too; forks of a driver's sandboxes are the driver's."""
    driver = ScriptedDriver({"a": "1"}, script=lambda each: each.answer("x", result(code=3)))
    base = await driver.prepare(SPEC)
    egress = Egress((HostRule("index.example"),))
    first = await driver.create(RUN, base, Limits(), egress=egress)
    await first.write("a", b"2")
    fork = await first.fork(RunId("run-000000000002"))
    assert (await fork.run(Command(shell="x"))).exit.code == 3
    assert driver.sandboxes == [first, fork]
    assert [made.egress for made in driver.created] == [egress, egress]
    layer = driver.created[1].layer
    assert layer is not None
    assert (layer.base_key, layer.size_bytes) == (base.key, 1)
    assert [file.path for file in (await fork.diff()).files] == ["a"]


async def test_a_lone_sandbox_forks_by_itself() -> None:
    """With its answers, and layers that lie on one another."""
    sandbox = ScriptedSandbox({"a": "1"})
    sandbox.answer("x", result(code=3))
    fork = await sandbox.fork(RUN)
    assert (await fork.run(Command(shell="x"))).exit.code == 3
    first, second = await fork.snapshot(), await fork.snapshot()
    assert first.stack[:-1] == second.stack[:-1]
    assert len(first.stack) == 2
    assert [call.name for call in sandbox.calls] == ["fork"]


async def test_frozen_time_is_that_of_a_tests_clock() -> None:
    """Calls thaw; asking for usage and connections does not."""
    now = [5.0]
    sandbox = ScriptedSandbox({"a": "1"}, clock=lambda: now[0])
    sandbox.asked.append(Connection("h", 443, False, "no rule"))
    await sandbox.pause()
    now[0] = 7.5
    assert sandbox.connections() == (Connection("h", 443, False, "no rule"),)
    assert (await sandbox.usage()).frozen_seconds == 2.5
    assert sandbox.frozen
    await sandbox.read("a")
    assert not sandbox.frozen
    now[0] = 9.0
    used = await sandbox.usage()
    assert (used.wall_seconds, used.frozen_seconds) == (4.0, 2.5)


async def test_a_driver_can_fail() -> None:
    """The failure that was given is what preparing raises."""
    driver = ScriptedDriver(failure=RepositoryError("no such commit"))
    with pytest.raises(RepositoryError, match="no such commit"):
        await driver.prepare(SPEC)


async def test_the_difference_names_each_change() -> None:
    """Added, changed, deleted and binary files, with counts where lines exist."""
    sandbox = ScriptedSandbox({"a": "one\ntwo\n", "gone": "x", "bin": b"\0"})
    await sandbox.write("a", b"one\n2\nthree\n")
    await sandbox.write("new", b"text")
    await sandbox.write("bin", b"\0\1")
    del sandbox.files["gone"]
    patch = await sandbox.diff()
    shown = [(each.path, each.status, each.added_lines, each.deleted_lines) for each in patch.files]
    assert shown == [
        ("a", "modified", 2, 1),
        ("bin", "modified", None, None),
        ("gone", "deleted", 0, 1),
        ("new", "added", 1, 0),
    ]


@given(FILES, FILES)
def test_a_difference_applies_to_what_it_was_made_from(
    before: dict[str, bytes], after: dict[str, bytes]
) -> None:
    """Patching the old files gives the new ones, line ends and all."""
    old = {path: FakeFile(data) for path, data in before.items()}
    new = {path: FakeFile(data) for path, data in after.items()}
    assert apply_to(old, difference(old, new).diff) == new


def test_git_takes_what_it_says(tmp_path: Path) -> None:
    """The diff is one that `git apply` takes."""
    old = {"a": FakeFile(b"one\ntwo\n"), "gone": FakeFile(b"x"), "t": FakeFile(b"1\n")}
    new = {"a": FakeFile(b"one\n2"), "n/new": FakeFile(b"q", 0o755), "t": FakeFile(b"1\n", 0o755)}
    for path, file in old.items():
        (tmp_path / path).write_bytes(file.data)
    diff = difference(old, new).diff
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=diff, check=True, timeout=20)
    found = {
        path.relative_to(tmp_path).as_posix(): FakeFile(
            path.read_bytes(), path.stat().st_mode & 0o777
        )
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    assert found == new
