"""Sandboxes for programs with an event loop of their own."""

import asyncio
import inspect
from collections.abc import Sequence
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

__all__ = ["AsyncCommands", "AsyncFiles", "AsyncRunningCommand", "AsyncSandbox"]


class AsyncSandbox(Face):
    """A `Sandbox` whose calls are awaited; usable from any event loop, and from several."""

    @classmethod
    async def create(cls, **options: Unpack[CreateOptions]) -> Self:
        """Start a sandbox; `/workspace` in it is empty, or the checkout of a repository."""
        wanted = creation(options)
        makes = keeper()
        return cls(await makes.background.wait(makes.create(wanted)))

    @property
    def commands(self) -> "AsyncCommands":
        """Runs commands, and raises where they fail."""
        return AsyncCommands(self._hold)

    @property
    def files(self) -> "AsyncFiles":
        """Reads and writes files."""
        return AsyncFiles(self._hold)

    @overload
    async def exec(
        self,
        command: str | Sequence[str],
        *,
        background: Literal[False] = False,
        **options: Unpack[ExecOptions],
    ) -> ExecResult: ...

    @overload
    async def exec(
        self,
        command: str | Sequence[str],
        *,
        background: Literal[True],
        **options: Unpack[ExecOptions],
    ) -> "AsyncRunningCommand": ...

    async def exec(
        self,
        command: str | Sequence[str],
        *,
        background: bool = False,
        **options: Unpack[ExecOptions],
    ) -> "ExecResult | AsyncRunningCommand":
        """Run a command to its end, as `Sandbox.exec` does.

        `on_stdout` and `on_stderr` may be coroutine functions.
        """
        asked = execution(command, options, check=False, background=background)
        return await (_start(self._hold, asked) if background else _run(self._hold, asked))

    async def is_running(self) -> bool:
        """Say whether commands can be run; never raises."""
        return await self._hold.background.wait(self._hold.box.is_running())

    async def pause(self) -> None:
        """Freeze everything inside, which then uses no processor; any other call thaws it."""
        await self._hold.background.wait(self._hold.box.pause())

    async def resume(self) -> None:
        """Thaw it."""
        await self._hold.background.wait(self._hold.box.resume())

    async def fork(self) -> "AsyncSandbox":
        """Start another sandbox with the same files, as `Sandbox.fork` does."""
        return AsyncSandbox(await self._hold.background.wait(keeper().fork(self._hold.box)))

    async def set_timeout(self, seconds: float) -> None:
        """Let the sandbox end so many seconds from now."""
        await self._hold.background.wait(self._hold.box.set_timeout(seconds))

    async def usage(self) -> SandboxUsage:
        """Return processor time, memory and disk used so far."""
        return await self._hold.background.wait(self._hold.box.usage())

    async def connections(self) -> tuple[Connection, ...]:
        """Return which hosts were asked for, and whether they could be reached."""
        return await self._hold.background.wait(self._hold.box.connections())

    async def diff(self) -> Patch:
        """Compare the workspace with the commit of the repository, in a sandbox of its own."""
        return await self._hold.background.wait(self._hold.box.diff())

    async def kill(self) -> None:
        """End the sandbox and everything in it; may be called twice."""
        await self._hold.background.wait(self._hold.box.close())

    async def close(self) -> None:
        """Do what `kill` does."""
        await self.kill()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.kill()


class AsyncCommands:
    """Commands of a sandbox that are expected to succeed."""

    def __init__(self, hold: Hold) -> None:
        self._hold = hold

    @overload
    async def run(
        self,
        command: str | Sequence[str],
        *,
        background: Literal[False] = False,
        **options: Unpack[ExecOptions],
    ) -> ExecResult: ...

    @overload
    async def run(
        self,
        command: str | Sequence[str],
        *,
        background: Literal[True],
        **options: Unpack[ExecOptions],
    ) -> "AsyncRunningCommand": ...

    async def run(
        self,
        command: str | Sequence[str],
        *,
        background: bool = False,
        **options: Unpack[ExecOptions],
    ) -> "ExecResult | AsyncRunningCommand":
        """Do what `AsyncSandbox.exec` does; `CommandFailedError` where the exit code is not 0."""
        asked = execution(command, options, check=True, background=background)
        return await (_start(self._hold, asked) if background else _run(self._hold, asked))


class AsyncRunningCommand:
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

    async def wait(self) -> ExecResult:
        """Wait for its end; of a command that was killed the exit code is 137."""
        return await self._hold.background.wait(self._running.wait())

    async def kill(self) -> None:
        """End it."""
        await self._hold.background.wait(self._running.kill())


class AsyncFiles:
    """Files of a sandbox, as `Files` has them."""

    def __init__(self, hold: Hold) -> None:
        self._calls = FileCalls(hold.box)
        self._hold = hold
        self._wait = hold.background.wait

    async def read(self, path: Path) -> str:
        """Return a file as text, as `read_text` does."""
        return await self.read_text(path)

    async def read_text(
        self, path: Path, encoding: str = "utf-8", *, errors: str = "backslashreplace"
    ) -> str:
        """Return a file as text, as `Files.read_text` does."""
        return await self._wait(self._calls.read_text(path, encoding, errors))

    async def read_bytes(self, path: Path) -> bytes:
        """Return a file of at most 64 MiB."""
        return await self._wait(self._calls.read_bytes(path))

    async def write(self, path: Path, data: str | bytes) -> None:
        """Write a whole file, text as UTF-8, and make the folders that it needs."""
        await self._wait(self._calls.write(path, data))

    async def exists(self, path: Path) -> bool:
        """Say whether there is a file or a folder."""
        return await self._wait(self._calls.exists(path))

    async def list(self, path: Path = ".") -> tuple[FileInfo, ...]:
        """Return what is in a folder, by name."""
        return await self._wait(self._calls.list(path))

    async def remove(self, path: Path) -> None:
        """Remove a file, or a folder with all that is in it."""
        await self._wait(self._calls.remove(path))

    async def make_dir(self, path: Path) -> None:
        """Make a folder and those above it; one that is there already stays as it is."""
        await self._wait(self._calls.make_dir(path))


async def _start(hold: Hold, asked: Execution) -> AsyncRunningCommand:
    return AsyncRunningCommand(hold, await hold.background.wait(Running.start(hold.box, asked)))


async def _run(hold: Hold, asked: Execution) -> ExecResult:
    handlers = {"stdout": asked.on_stdout, "stderr": asked.on_stderr}
    if not any(handlers.values()):
        return await hold.background.wait(hold.box.run(asked))
    loop = asyncio.get_running_loop()
    pieces: asyncio.Queue[tuple[StreamName, str] | None] = asyncio.Queue()

    def sink(stream: StreamName, text: str) -> None:
        loop.call_soon_threadsafe(pieces.put_nowait, (stream, text))

    running = asyncio.ensure_future(hold.background.wait(hold.box.run(asked, sink)))
    running.add_done_callback(lambda _: pieces.put_nowait(None))
    try:
        while (piece := await pieces.get()) is not None:
            stream, text = piece
            handler = handlers[stream]
            told = None if handler is None else handler(text)
            if inspect.isawaitable(told):
                await told
        return await running
    finally:
        running.cancel()
