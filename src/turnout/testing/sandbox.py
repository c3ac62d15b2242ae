"""A sandbox in memory: files in a mapping, commands answered by a script.

    sandbox = ScriptedSandbox({"calc.py": "add = int.__sub__"})
    sandbox.answer("pytest", result(b"1 failed", code=1), result(b"1 passed"))
    ...
    assert sandbox.commands[0].shell == "pytest -q"

Files, patches and diffs behave as in a real sandbox, symbolic links excepted. A command whose
line no answer matches exits with status 0 and prints nothing.
"""

import hashlib
import posixpath
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass

from turnout.core.ids import RunId
from turnout.core.runs import Patch
from turnout.errors import SandboxDiedError, SandboxError, ToolError
from turnout.sandbox.base import (
    REPO,
    BaseRef,
    BaseSpec,
    Blob,
    Capabilities,
    Command,
    CommandResult,
    Exit,
    ExitReason,
    Limits,
    Listing,
    Output,
    PatchResult,
    SandboxUsage,
    SearchHit,
)
from turnout.sandbox.inside.find import glob_expression, matching_lines
from turnout.sandbox.patches import check_patch
from turnout.testing.patching import FakeFile, apply_to, difference

__all__ = [
    "Call",
    "Created",
    "FakeFile",
    "ScriptedDriver",
    "ScriptedSandbox",
    "command_line",
    "result",
]

_RUN_ID = RunId("run-000000000000")

Handler = Callable[[Command], CommandResult]
"""Computes an answer; may change the sandbox's `files`."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call that was made of a sandbox or a driver."""

    name: str
    """Method, such as `read` or `run`."""
    subject: str
    """Path, pattern or command line."""


@dataclass(frozen=True, slots=True)
class Created:
    """What a sandbox was created with."""

    run_id: RunId
    base: BaseRef
    limits: Limits


def result(
    stdout: bytes = b"",
    stderr: bytes = b"",
    *,
    code: int | None = 0,
    reason: ExitReason = "exited",
    wall_seconds: float = 0.01,
) -> CommandResult:
    """Return how a command ended and what it printed."""
    ended = Exit(reason, code, None, wall_seconds, len(stdout), len(stderr), 0, 0)
    return CommandResult(ended, stdout, stderr)


def command_line(command: Command) -> str:
    """Return a command as one line."""
    return command.shell if command.shell is not None else " ".join(command.argv)


class _Answers:
    """Answers to commands whose line matches; the last one stays."""

    def __init__(self, pattern: str, answers: tuple[CommandResult | Handler, ...]) -> None:
        self.pattern = re.compile(pattern)
        self._left = list(answers)

    def next(self, command: Command) -> CommandResult:
        answer = self._left.pop(0) if len(self._left) > 1 else self._left[0]
        return answer if isinstance(answer, CommandResult) else answer(command)


class ScriptedSandbox:
    """A `Sandbox` whose files are `files` and whose commands are answered by `answer`."""

    def __init__(
        self,
        files: Mapping[str, str | bytes | FakeFile] | None = None,
        *,
        run_id: RunId | None = None,
    ) -> None:
        self.files: dict[str, FakeFile] = {
            path: _file(content) for path, content in (files or {}).items()
        }
        """The workspace, by path; tests may change it."""
        self.base: dict[str, FakeFile] = dict(self.files)
        """What `diff` compares with."""
        self.calls: list[Call] = []
        self.commands: list[Command] = []
        self.inputs: list[bytes] = []
        """Standard input of each command, in the order of `commands`."""
        self.closed = False
        self._run_id = run_id or _RUN_ID
        self._answers: list[_Answers] = []
        self._died = ""

    @property
    def run_id(self) -> RunId:
        """The run that the sandbox belongs to."""
        return self._run_id

    @property
    def isolation(self) -> str:
        """Says that there are no walls."""
        return "scripted"

    def answer(self, pattern: str, *answers: CommandResult | Handler) -> None:
        """Answer commands whose line holds `pattern`, a regular expression, in this order.

        The last answer stays; of several patterns the one that was given last is asked first.
        """
        if not answers:
            raise ValueError("at least one answer is needed")
        self._answers.insert(0, _Answers(pattern, answers))

    def die(self, reason: str = "its agent ended") -> None:
        """Let every later call raise `SandboxDiedError`."""
        self._died = reason

    async def exec(self, command: Command) -> AsyncIterator[Output | Exit]:
        """Answer a command."""
        if bool(command.argv) == (command.shell is not None):
            raise SandboxError("A command has either arguments or a line for the shell.")
        line = command_line(command)
        self._note("run", line)
        self.commands.append(command)
        self.inputs.append(await _whole_input(command))
        answers = next((each for each in self._answers if each.pattern.search(line)), None)
        ended = result() if answers is None else answers.next(command)
        if ended.stdout:
            yield Output("stdout", ended.stdout)
        if ended.stderr:
            yield Output("stderr", ended.stderr)
        yield ended.exit

    async def run(self, command: Command) -> CommandResult:
        """Answer a command as a whole."""
        parts: dict[str, bytes] = {"stdout": b"", "stderr": b""}
        async for item in self.exec(command):
            if isinstance(item, Exit):
                return CommandResult(item, parts["stdout"], parts["stderr"])
            parts[item.stream] += item.data
        raise SandboxError("The sandbox reported no end of a command.")

    async def kill_all(self) -> None:
        """Do nothing: no process is left."""
        self._note("kill_all", "")

    async def read(self, path: str, *, offset: int = 0, limit: int = 1 << 20) -> Blob:
        """Read a file; `ToolError` where there is none."""
        self._note("read", path)
        if offset < 0 or limit < 0:
            raise ToolError("Offset and limit of a read are not negative.")
        name = _inside(path, "read")
        file = self.files.get(name)
        if file is None:
            is_folder = not name or any(each.startswith(f"{name}/") for each in self.files)
            reason = "it is a folder, not a file" if is_folder else "No such file or directory"
            raise ToolError(f"{path} cannot be read: {reason}.")
        digest = hashlib.sha256(file.data).hexdigest()
        return Blob(file.data[offset : offset + limit], len(file.data), file.mode, digest)

    async def write(
        self, path: str, data: bytes, *, mode: int | None = None, expect_sha256: str | None = None
    ) -> None:
        """Write a file."""
        self._note("write", path)
        name = _inside(path, "written")
        if ".git" in name.lower().split("/"):
            raise ToolError(f"{path} cannot be written: files of .git are not written by tools.")
        if not name or any(each.startswith(f"{name}/") for each in self.files):
            raise ToolError(f"{path} cannot be written: it exists and is not a regular file.")
        before = self.files.get(name)
        if expect_sha256 is not None:
            if before is None:
                raise ToolError(f"{path} cannot be read: No such file or directory.")
            if hashlib.sha256(before.data).hexdigest() != expect_sha256:
                raise ToolError(
                    f"{path} is not the file that was read.", mend="Read it again before writing."
                )
        kept = before.mode if before else 0o644
        self.files[name] = FakeFile(data, kept if mode is None else mode & 0o777)

    async def list(self, pattern: str = "**/*", *, limit: int = 200) -> Listing:
        """Return the files that match a glob."""
        self._note("list", pattern)
        paths = self._matching(pattern)
        return Listing(tuple(paths[: max(0, limit)]), len(paths))

    async def search(
        self, pattern: str, *, glob: str = "**/*", limit: int = 100
    ) -> tuple[SearchHit, ...]:
        """Return lines that match a regular expression."""
        self._note("search", pattern)
        try:
            expression = re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise ToolError(f"This is no regular expression: {error}.") from None
        hits = [
            SearchHit(path, number, line)
            for path in self._matching(glob)
            if b"\0" not in self.files[path].data
            for number, line in matching_lines(
                expression, self.files[path].data.decode(errors="backslashreplace")
            )
        ]
        return tuple(hits[: max(0, limit)])

    async def apply_patch(self, patch: bytes) -> PatchResult:
        """Apply a unified diff, all of it or nothing."""
        self._note("apply_patch", "")
        try:
            paths = check_patch(patch)
        except ToolError as error:
            return PatchResult(False, (), str(error))
        try:
            self.files = apply_to(self.files, patch)
        except ValueError as error:
            return PatchResult(
                False,
                (),
                f"The patch was not applied, nothing was changed: {error} "
                "Read the files again and send a patch whose context lines match them exactly.",
            )
        return PatchResult(True, paths, f"Changed {', '.join(paths)}.")

    async def diff(self) -> Patch:
        """Compare the files with what they were at first."""
        self._note("diff", "")
        return difference(self.base, self.files)

    async def usage(self) -> SandboxUsage:
        """Return that nothing was used."""
        self._note("usage", "")
        return SandboxUsage(None, None, 0.0)

    async def close(self) -> None:
        """End the sandbox; may be called twice."""
        self.closed = True
        self._died = self._died or "it was closed"

    def _note(self, name: str, subject: str) -> None:
        if self._died:
            raise SandboxDiedError(f"The sandbox is gone: {self._died}.")
        self.calls.append(Call(name, subject))

    def _matching(self, pattern: str) -> tuple[str, ...]:
        expression = re.compile(glob_expression(pattern))
        return tuple(
            path
            for path in sorted(self.files)
            if expression.match(path) and ".git" not in path.split("/")
        )


class ScriptedDriver:
    """A `SandboxDriver` whose sandboxes start with the same files and answers."""

    def __init__(
        self,
        files: Mapping[str, str | bytes | FakeFile] | None = None,
        *,
        script: Callable[[ScriptedSandbox], None] = lambda _: None,
        failure: Exception | None = None,
    ) -> None:
        self._files = dict(files or {})
        self._script = script
        self._failure = failure
        self.sandboxes: list[ScriptedSandbox] = []
        """Every sandbox that was created, in this order."""
        self.created: list[Created] = []
        """What each of them was asked for with."""
        self.prepared: list[BaseSpec] = []

    @property
    def name(self) -> str:
        """Says that there are no walls."""
        return "none"

    async def probe(self) -> Capabilities:
        """Return that everything a script needs is there."""
        return Capabilities("none", True, "scripted", ())

    async def prepare(self, spec: BaseSpec) -> BaseRef:
        """Return a base; raises `failure` where one was given."""
        if self._failure is not None:
            raise self._failure
        self.prepared.append(spec)
        return BaseRef("scripted", spec.commit, spec.requirements or ())

    async def create(self, run_id: RunId, base: BaseRef, limits: Limits) -> ScriptedSandbox:
        """Return a sandbox with the given files, its answers set by `script`."""
        self.created.append(Created(run_id, base, limits))
        sandbox = ScriptedSandbox(self._files, run_id=run_id)
        self._script(sandbox)
        self.sandboxes.append(sandbox)
        return sandbox

    async def reap(self, known: frozenset[RunId]) -> tuple[RunId, ...]:
        """Close every sandbox of a run that is not known."""
        lost = [each for each in self.sandboxes if not each.closed and each.run_id not in known]
        for sandbox in lost:
            await sandbox.close()
        return tuple(sorted({sandbox.run_id for sandbox in lost}))


def _file(content: str | bytes | FakeFile) -> FakeFile:
    if isinstance(content, FakeFile):
        return content
    return FakeFile(content.encode() if isinstance(content, str) else content)


def _inside(path: str, verb: str) -> str:
    """Return a path relative to the workspace; `ToolError` where it leaves it."""
    if "\0" in path or not path:
        raise ToolError(f"{path!r} is no path.")
    full = posixpath.normpath(posixpath.join(REPO, path))
    if full != REPO and not full.startswith(f"{REPO}/"):
        raise ToolError(f"{path} cannot be {verb}: the path leaves the workspace.")
    return full[len(REPO) + 1 :]


async def _whole_input(command: Command) -> bytes:
    if command.stdin is None or isinstance(command.stdin, bytes):
        return command.stdin or b""
    return b"".join([piece async for piece in command.stdin])
