"""What a command left: its output as text, and how it ended."""

import codecs
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal

from turnout.errors import CommandFailedError
from turnout.sandbox.base import Command, Exit, Output

__all__ = ["Collecting", "ExecResult", "StreamName", "failure", "not_started"]

StreamName = Literal["stdout", "stderr"]

_TIMED_OUT: Final = 124
_NOT_STARTED: Final = 127
_SIGNALLED: Final = 128
_KILLED: Final = _SIGNALLED + 9
_UNDECODABLE: Final = "backslashreplace"
_SHOWN_COMMAND: Final = 200
_SHOWN_OUTPUT: Final = 8_000


@dataclass(frozen=True, slots=True)
class ExecResult:
    """A command that has ended; `str()` of it is made to be read by a model."""

    stdout: str
    """At most 64 KiB of it: its head and its tail, with a line between that counts what is left
    out. Bytes that are not UTF-8 are shown as `\\xNN`."""
    stderr: str
    """Likewise. Lines that begin with `turnout: ` are added to it, and say what was in the way."""
    exit_code: int
    """As in a shell: 128 + n where signal n ended it, 127 where it could not be started, 124 where
    its time was over."""
    timed_out: bool = False
    truncated: bool = False
    """Whether anything of the output is left out."""
    duration: float = 0.0
    """Seconds."""

    @property
    def ok(self) -> bool:
        """True where it ended by itself with status 0."""
        return self.exit_code == 0

    def __str__(self) -> str:
        lines = [f"exit code {self.exit_code}{' (timed out)' if self.timed_out else ''}"]
        for name, text in (("stdout", self.stdout), ("stderr", self.stderr)):
            if text:
                lines += [f"{name}:", text.removesuffix("\n")]
        return "\n".join(lines)


class _Stream:
    """One output stream, whole and as it arrives."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._decoder = codecs.getincrementaldecoder("utf-8")(_UNDECODABLE)

    def take(self, data: bytes) -> str:
        self.data += data
        return self._decoder.decode(data)

    def text(self, head: int, omitted: int) -> str:
        whole = bytes(self.data)
        if not omitted:
            return whole.decode(errors=_UNDECODABLE)
        parts = [part.decode(errors=_UNDECODABLE) for part in (whole[:head], whole[head:])]
        return f"\n[... {omitted} bytes left out ...]\n".join(parts)


@dataclass(frozen=True, slots=True)
class Collecting:
    """The output of a command that runs."""

    command: Command
    streams: dict[StreamName, _Stream] = field(
        default_factory=lambda: {"stdout": _Stream(), "stderr": _Stream()}
    )

    def take(self, output: Output) -> str:
        """Keep a piece and return its text; a character that it cuts comes with the next piece."""
        return self.streams[output.stream].take(output.data)

    def so_far(self, stream: StreamName) -> str:
        """Return what was kept of one stream until now."""
        return self.streams[stream].text(0, 0)

    def result(self, ended: Exit, notes: Iterable[str] = ()) -> ExecResult:
        """Return the result, `notes` added to its stderr."""
        head = self.command.head
        stderr = self.streams["stderr"].text(head, ended.stderr_omitted)
        reasons = _reasons(ended, self.command)
        return ExecResult(
            stdout=self.streams["stdout"].text(head, ended.stdout_omitted),
            stderr=_with_notes(stderr, (*reasons, *notes)),
            exit_code=_exit_code(ended),
            timed_out=ended.reason == "timeout",
            truncated=bool(ended.stdout_omitted or ended.stderr_omitted)
            or ended.reason == "output_limit",
            duration=ended.wall_seconds,
        )

    def killed(self) -> ExecResult:
        """Return the result of a command that its caller ended."""
        return ExecResult(self.so_far("stdout"), self.so_far("stderr"), _KILLED)


def not_started(why: str) -> ExecResult:
    """Return the result of a command that no sandbox could be asked to run."""
    return ExecResult("", f"turnout: the command was not started: {why}\n", _NOT_STARTED)


def failure(command: Command, result: ExecResult) -> CommandFailedError:
    """Return the error for a command that should have succeeded."""
    line = command.shell if command.shell is not None else " ".join(command.argv)
    shown = line if len(line) <= _SHOWN_COMMAND else f"{line[:_SHOWN_COMMAND]}…"
    how = "ran out of time" if result.timed_out else f"ended with exit code {result.exit_code}"
    return CommandFailedError(
        f"The command `{shown}` {how}.",
        exit_code=result.exit_code,
        stdout=result.stdout[-_SHOWN_OUTPUT:],
        stderr=result.stderr[-_SHOWN_OUTPUT:],
        timed_out=result.timed_out,
    )


def _exit_code(ended: Exit) -> int:
    match ended.reason:
        case "timeout":
            return _TIMED_OUT
        case "not_started":
            return _NOT_STARTED
        case "exited":
            if ended.code is not None:
                return ended.code
        case _ if ended.code:
            return ended.code
    return _SIGNALLED + ended.signal if ended.signal else _KILLED


def _reasons(ended: Exit, command: Command) -> tuple[str, ...]:
    match ended.reason:
        case "not_started":
            return (f"the command was not started: {ended.error}",)
        case "oom":
            mend = "raise `memory_mb` under `[sandbox]` in turnout.toml"
            return (f"the sandbox's memory was used up, and the command was ended; {mend}",)
        case "output_limit":
            limit = command.kill_after_bytes >> 20
            return (f"the command printed more than {limit} MiB and was ended",)
        case _:
            return ()


def _with_notes(stderr: str, notes: Iterable[str]) -> str:
    lines = "".join(f"turnout: {note}\n" for note in notes)
    cut = "\n" if lines and stderr and not stderr.endswith("\n") else ""
    return f"{stderr}{cut}{lines}"
