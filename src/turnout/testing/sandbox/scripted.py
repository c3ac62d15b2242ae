"""The scripted sandbox."""

import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass

from turnout.core.ids import RunId
from turnout.errors import SandboxDiedError, SandboxError
from turnout.sandbox.base import (
    Command,
    CommandResult,
    Connection,
    Exit,
    ExitReason,
    LayerRef,
    Output,
    SandboxUsage,
)
from turnout.testing.sandbox.files import ScriptedFiles
from turnout.testing.sandbox.layers import ScriptedLayers
from turnout.testing.sandbox.patching import FakeFile

__all__ = ["Call", "Handler", "Origin", "ScriptedSandbox", "command_line", "result"]

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


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a sandbox comes from, and its forks."""

    base_key: str
    layers: ScriptedLayers
    layer: LayerRef | None
    """What it began on; None: the base alone."""
    start: Callable[[RunId, LayerRef], Awaitable["ScriptedSandbox"]] | None
    """Starts a fork; None: `ScriptedSandbox` does it by itself."""


class ScriptedSandbox(ScriptedFiles):
    """A `Sandbox` whose files are `files` and whose commands are answered by `answer`."""

    def __init__(
        self,
        files: Mapping[str, str | bytes | FakeFile] | None = None,
        *,
        run_id: RunId | None = None,
        origin: Origin | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(files or {})
        self.calls: list[Call] = []
        self.commands: list[Command] = []
        self.inputs: list[bytes] = []
        """Standard input of each command, in the order of `commands`."""
        self.asked: list[Connection] = []
        """What `connections` returns; tests add to it."""
        self.frozen = False
        self.closed = False
        self._run_id = run_id or _RUN_ID
        self._origin = origin or Origin("scripted", ScriptedLayers(), None, None)
        self._answers: list[_Answers] = []
        self._died = ""
        self._clock = clock
        self._began = self._frozen_at = clock()
        self._frozen_seconds = 0.0

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

    def note(self, name: str, subject: str) -> None:
        """Record a call, which thaws what was frozen."""
        self._check()
        self._thaw()
        self.calls.append(Call(name, subject))

    async def exec(self, command: Command) -> AsyncIterator[Output | Exit]:
        """Answer a command."""
        if bool(command.argv) == (command.shell is not None):
            raise SandboxError("A command has either arguments or a line for the shell.")
        line = command_line(command)
        self.note("run", line)
        self.commands.append(command)
        self.inputs.append(await _whole_input(command))
        answers = next((each for each in self._answers if each.pattern.search(line)), None)
        ended = self._by_itself(command) if answers is None else answers.next(command)
        if ended.stdout:
            yield Output("stdout", ended.stdout)
        if ended.stderr:
            yield Output("stderr", ended.stderr)
        yield ended.exit

    def _by_itself(self, command: Command) -> CommandResult:
        """Remove files as `rm -f -- PATH ...` does; any other command does nothing."""
        if command.argv[:3] == ("rm", "-f", "--"):
            for path in command.argv[3:]:
                self.files.pop(path, None)
        return result()

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
        self.note("kill_all", "")

    async def snapshot(self) -> LayerRef:
        """Keep the files as they are."""
        self._check()
        self.calls.append(Call("snapshot", ""))
        return self._keep()

    async def fork(self, run_id: RunId) -> "ScriptedSandbox":
        """Return another sandbox with the same files and answers."""
        self._check()
        self.calls.append(Call("fork", run_id))
        layer, origin = self._keep(), self._origin
        if origin.start is not None:
            return await origin.start(run_id, layer)
        beginning = Origin(origin.base_key, origin.layers, layer, None)
        twin = ScriptedSandbox(self.files, run_id=run_id, origin=beginning, clock=self._clock)
        twin.base = dict(self.base)
        twin._answers = list(self._answers)
        return twin

    async def pause(self) -> None:
        """Freeze it."""
        self._check()
        if not self.frozen:
            self.frozen, self._frozen_at = True, self._clock()

    async def resume(self) -> None:
        """Thaw it."""
        self._check()
        self._thaw()

    async def usage(self) -> SandboxUsage:
        """Return how long it has been there and frozen."""
        self._check()
        now = self._clock()
        frozen = self._frozen_seconds + (now - self._frozen_at if self.frozen else 0.0)
        return SandboxUsage(None, None, now - self._began, None, frozen)

    def connections(self) -> tuple[Connection, ...]:
        """Return what a test has put into `asked`."""
        return tuple(self.asked)

    async def close(self) -> None:
        """End the sandbox; may be called twice."""
        self.closed = True
        self._died = self._died or "it was closed"

    def _check(self) -> None:
        if self._died:
            raise SandboxDiedError(f"The sandbox is gone: {self._died}.")

    def _keep(self) -> LayerRef:
        origin = self._origin
        return origin.layers.keep(origin.base_key, origin.layer, self.files)

    def _thaw(self) -> None:
        if self.frozen:
            self.frozen = False
            self._frozen_seconds += self._clock() - self._frozen_at


async def _whole_input(command: Command) -> bytes:
    if command.stdin is None or isinstance(command.stdin, bytes):
        return command.stdin or b""
    return b"".join([piece async for piece in command.stdin])
