"""Sandboxes for programs that wait for each call."""

from collections.abc import Sequence
from queue import SimpleQueue
from types import TracebackType
from typing import Literal, Self, Unpack, overload

from turnout.core.runs import Patch
from turnout.sandbox.base import Connection, SandboxUsage
from turnout.sdk.face import Face
from turnout.sdk.file_calls import FileCalls, FileInfo, Path
from turnout.sdk.keeper import Hold, keeper
from turnout.sdk.options import CreateOptions, ExecOptions, Execution, creation, execution
from turnout.sdk.result import ExecResult, StreamName
from turnout.sdk.running import Running

__all__ = ["Commands", "Files", "RunningCommand", "Sandbox"]


class Sandbox(Face):
    """A sandbox of this program, made by `Sandbox.create()`; usable from any thread.

    It is ended by `kill`, at the end of a `with` block, when its time is over, when nothing refers
    to it any more, and with the program, however that ends.
    """

    @classmethod
    def create(cls, **options: Unpack[CreateOptions]) -> Self:
        """Start a sandbox; `/workspace` in it is empty, or the checkout of a repository."""
        wanted = creation(options)
        makes = keeper()
        return cls(makes.background.call(makes.create(wanted)))

    @property
    def commands(self) -> "Commands":
        """Runs commands, and raises where they fail."""
        return Commands(self._hold)

    @property
    def files(self) -> "Files":
        """Reads and writes files."""
        return Files(self._hold)

    @overload
    def exec(
        self,
        command: str | Sequence[str],
        *,
        background: Literal[False] = False,
        **options: Unpack[ExecOptions],
    ) -> ExecResult: ...

    @overload
    def exec(
        self,
        command: str | Sequence[str],
        *,
        background: Literal[True],
        **options: Unpack[ExecOptions],
    ) -> "RunningCommand": ...

    def exec(
        self,
        command: str | Sequence[str],
        *,
        background: bool = False,
        **options: Unpack[ExecOptions],
    ) -> "ExecResult | RunningCommand":
        """Run a command to its end, a text by `bash -c` and a list without a shell.

        How it ended is in the result, whatever its exit code, unless `check` is set. With
        `background` it is started and the caller goes on. What a command leaves running, such as
        a server that it started with `&`, runs on.
        """
        asked = execution(command, options, check=False, background=background)
        return _start(self._hold, asked) if background else _run(self._hold, asked)

    def is_running(self) -> bool:
        """Say whether commands can be run; never raises."""
        return self._hold.background.call(self._hold.box.is_running())

    def pause(self) -> None:
        """Freeze everything inside, which then uses no processor; any other call thaws it."""
        self._hold.background.call(self._hold.box.pause())

    def resume(self) -> None:
        """Thaw it."""
        self._hold.background.call(self._hold.box.resume())

    def fork(self) -> "Sandbox":
        """Start another sandbox with the same files, on the same terms, with its time anew.

        Processes and what is in `/tmp` are not taken along.
        """
        return Sandbox(self._hold.background.call(keeper().fork(self._hold.box)))

    def set_timeout(self, seconds: float) -> None:
        """Let the sandbox end so many seconds from now."""
        self._hold.background.call(self._hold.box.set_timeout(seconds))

    def usage(self) -> SandboxUsage:
        """Return processor time, memory and disk used so far."""
        return self._hold.background.call(self._hold.box.usage())

    def connections(self) -> tuple[Connection, ...]:
        """Return which hosts were asked for, and whether they could be reached."""
        return self._hold.background.call(self._hold.box.connections())

    def diff(self) -> Patch:
        """Compare the workspace with the commit of the repository, in a sandbox of its own."""
        return self._hold.background.call(self._hold.box.diff())

    def kill(self) -> None:
        """End the sandbox and everything in it; may be called twice."""
        self._hold.background.call(self._hold.box.close())

    def close(self) -> None:
        """Do what `kill` does."""
        self.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()


class Commands:
    """Commands of a sandbox that are expected to succeed."""

    def __init__(self, hold: Hold) -> None:
        self._hold = hold

    @overload
    def run(
        self,
        command: str | Sequence[str],
        *,
        background: Literal[False] = False,
        **options: Unpack[ExecOptions],
    ) -> ExecResult: ...

    @overload
    def run(
        self,
        command: str | Sequence[str],
        *,
        background: Literal[True],
        **options: Unpack[ExecOptions],
    ) -> "RunningCommand": ...

    def run(
        self,
        command: str | Sequence[str],
        *,
        background: bool = False,
        **options: Unpack[ExecOptions],
    ) -> "ExecResult | RunningCommand":
        """Do what `Sandbox.exec` does; `CommandFailedError` where the exit code is not 0."""
        asked = execution(command, options, check=True, background=background)
        return _start(self._hold, asked) if background else _run(self._hold, asked)


class RunningCommand:
    """A command that was started with `background`."""

    def __init__(self, hold: Hold, running: Running) -> None:
        self._hold = hold
        self._running = running

    @property
    def stdout(self) -> str:
        """What it has printed so far, the first 32 KiB of it."""
        return self._running.so_far("stdout")

    @property
    def stderr(self) -> str:
        """Likewise."""
        return self._running.so_far("stderr")

    def is_running(self) -> bool:
        """Say whether it has not ended yet."""
        return not self._running.is_done

    def wait(self) -> ExecResult:
        """Wait for its end; of a command that was killed the exit code is 137."""
        return self._hold.background.call(self._running.wait())

    def kill(self) -> None:
        """End it."""
        self._hold.background.call(self._running.kill())


class Files:
    """Files of a sandbox; a relative path starts from `/workspace`.

    `ToolError` says what cannot be done: a file that is not there, a folder in its place, a path
    that leads out of the workspace by a link, a file of `.git` written.
    """

    def __init__(self, hold: Hold) -> None:
        self._calls = FileCalls(hold.box)
        self._hold = hold
        self._call = hold.background.call

    def read(self, path: Path) -> str:
        """Return a file as text, as `read_text` does."""
        return self.read_text(path)

    def read_text(
        self, path: Path, encoding: str = "utf-8", *, errors: str = "backslashreplace"
    ) -> str:
        r"""Return a file as text.

        Bytes that are not of the encoding are shown as `\xNN`, so that a text that was edited must
        not be written back over such a file; with `errors="strict"` they raise `ToolError`.
        """
        return self._call(self._calls.read_text(path, encoding, errors))

    def read_bytes(self, path: Path) -> bytes:
        """Return a file of at most 64 MiB."""
        return self._call(self._calls.read_bytes(path))

    def write(self, path: Path, data: str | bytes) -> None:
        """Write a whole file, text as UTF-8, and make the folders that it needs."""
        self._call(self._calls.write(path, data))

    def exists(self, path: Path) -> bool:
        """Say whether there is a file or a folder."""
        return self._call(self._calls.exists(path))

    def list(self, path: Path = ".") -> tuple[FileInfo, ...]:
        """Return what is in a folder, by name."""
        return self._call(self._calls.list(path))

    def remove(self, path: Path) -> None:
        """Remove a file, or a folder with all that is in it."""
        self._call(self._calls.remove(path))

    def make_dir(self, path: Path) -> None:
        """Make a folder and those above it; one that is there already stays as it is."""
        self._call(self._calls.make_dir(path))


def _start(hold: Hold, asked: Execution) -> RunningCommand:
    return RunningCommand(hold, hold.background.call(Running.start(hold.box, asked)))


def _run(hold: Hold, asked: Execution) -> ExecResult:
    handlers = {"stdout": asked.on_stdout, "stderr": asked.on_stderr}
    if not any(handlers.values()):
        return hold.background.call(hold.box.run(asked))
    pieces: SimpleQueue[tuple[StreamName, str] | None] = SimpleQueue()
    work = hold.box.run(asked, lambda stream, text: pieces.put((stream, text)))
    with hold.background.working(work) as running:
        running.add_done_callback(lambda _: pieces.put(None))
        while (piece := pieces.get()) is not None:
            stream, text = piece
            if (handler := handlers[stream]) is not None:
                handler(text)
        return running.result()
