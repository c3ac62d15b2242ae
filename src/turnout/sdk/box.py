"""A sandbox as callers have it: its commands, its time, its end."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from turnout.core.runs import Patch
from turnout.errors import SandboxDiedError, SandboxError, UsageError
from turnout.sandbox.base import (
    Command,
    CommandResult,
    Connection,
    Exit,
    Sandbox,
    SandboxUsage,
)
from turnout.sdk.notes import connection_notes
from turnout.sdk.opening import Opened, new_sandbox_id
from turnout.sdk.options import Creation, Execution, seconds_of
from turnout.sdk.result import Collecting, ExecResult, StreamName, failure, not_started

__all__ = ["Box", "Sink"]

Sink = Callable[[StreamName, str], object]
"""Is given output as it arrives, on the loop; must not wait."""

_ALIVE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class _Terms:
    """What a sandbox was asked for with; its forks are on the same terms."""

    opened: Opened
    timeout: float
    labels: Mapping[str, str]
    env: Mapping[str, str] = field(repr=False)


class Box:
    """One sandbox; every method but `is_running` may raise `SandboxDiedError`.

    Made, used and ended on the loop of this process's `Background` alone.
    """

    def __init__(self, sandbox: Sandbox, terms: _Terms) -> None:
        self.id = str(sandbox.run_id)
        self.labels = MappingProxyType(dict(terms.labels))
        self.warnings = terms.opened.warnings
        self.sandbox = sandbox
        self._terms = terms
        self._paused = False
        self._why_gone: tuple[str, str] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._born = self._loop.time()
        self._timer = self._loop.call_later(terms.timeout, self._expire)

    @classmethod
    def of(cls, opened: Opened, wanted: Creation) -> "Box":
        """Return a sandbox that was just made."""
        most = opened.limits.lifetime_seconds
        timeout = most if wanted.timeout is None else wanted.timeout
        env = wanted.env
        if wanted.repository is None:
            # Else a file that shares its name with a module would stand in for it everywhere.
            env = {"PYTHONPATH": "", **env}
        return cls(opened.sandbox, _Terms(opened, timeout, wanted.labels, env))

    async def run(
        self,
        execution: Execution,
        sink: Sink | None = None,
        collecting: Collecting | None = None,
    ) -> ExecResult:
        """Run a command to its end; `CommandFailedError` where it was to succeed and did not."""
        if execution.unfit:
            result = not_started(execution.unfit)
        else:
            kept = collecting or Collecting(execution.command)
            result = await self._run(execution.command, kept, sink)
        if execution.check and not result.ok:
            raise failure(execution.command, result)
        return result

    async def _run(self, command: Command, kept: Collecting, sink: Sink | None) -> ExecResult:
        timeout = min(command.timeout, self._terms.opened.limits.lifetime_seconds)
        env = {"PWD": command.cwd, **self._terms.env, **command.env}
        command = replace(command, timeout=timeout, env=env)
        ended: Exit | None = None
        with self.awake() as sandbox:
            before = len(sandbox.connections())
            async for item in sandbox.exec(command):
                if isinstance(item, Exit):
                    ended = item
                elif (text := kept.take(item)) and sink is not None:
                    sink(item.stream, text)
            asked = sandbox.connections()[before:]
        if ended is None:
            raise SandboxError("The sandbox reported no end of a command.")
        result = kept.result(ended)
        printed = () if result.ok else (result.stdout, result.stderr)
        notes = connection_notes(self._terms.opened.egress, asked, printed)
        return kept.result(ended, notes) if notes else result

    async def plain(self, *argv: str, stdin: bytes | None = None, timeout: float) -> CommandResult:
        """Run a command of our own, such as one about files, in the workspace."""
        with self.awake() as sandbox:
            return await sandbox.run(Command(argv, stdin=stdin, timeout=timeout))

    @contextmanager
    def alive(self) -> Iterator[Sandbox]:
        """Lend the sandbox; when it dies meanwhile, what the caller reads is why."""
        self._check()
        try:
            yield self.sandbox
        except SandboxDiedError as error:
            if self._why_gone is None:
                self._end(error.message, error.mend)
            self._check()

    def awake(self) -> AbstractContextManager[Sandbox]:
        """Lend the sandbox for a call that thaws it."""
        self._paused = False
        return self.alive()

    def _check(self) -> None:
        if self._why_gone is not None:
            message, mend = self._why_gone
            raise SandboxDiedError(message, mend=mend)

    @property
    def is_open(self) -> bool:
        """Whether nobody has ended it yet."""
        return self._closing is None

    async def is_running(self) -> bool:
        """Whether commands can be run; a paused sandbox is not woken to find out."""
        if self._why_gone is not None or self._paused:
            return self._why_gone is None
        try:
            await self.plain("/bin/sh", "-c", ":", timeout=_ALIVE_SECONDS)
        except SandboxDiedError:
            return False
        return True

    async def pause(self) -> None:
        """Freeze everything inside; any other call thaws it."""
        with self.alive() as sandbox:
            await sandbox.pause()
        self._paused = True

    async def resume(self) -> None:
        """Thaw it."""
        with self.awake() as sandbox:
            await sandbox.resume()

    async def fork(self) -> "Box":
        """Start another sandbox with the same files, on the same terms."""
        with self.alive() as sandbox:
            forked = await sandbox.fork(new_sandbox_id())
        return Box(forked, self._terms)

    async def set_timeout(self, seconds: float) -> None:
        """End the sandbox so many seconds from now."""
        most = self._terms.opened.limits.lifetime_seconds
        left = self._born + most - self._loop.time()
        if seconds_of(seconds, "timeout") > left:
            raise UsageError(
                f"A sandbox lives for {most:g} s at most, and this one has {left:.0f} s left.",
                mend="Give a time within that.",
            )
        with self.alive():
            self._timer.cancel()
            self._timer = self._loop.call_later(seconds, self._expire)

    async def usage(self) -> SandboxUsage:
        """Return what was used so far."""
        with self.alive() as sandbox:
            return await sandbox.usage()

    async def connections(self) -> tuple[Connection, ...]:
        """Return what was asked of the proxy so far."""
        with self.alive() as sandbox:
            return sandbox.connections()

    async def diff(self) -> Patch:
        """Compare the workspace with its base commit."""
        with self.alive() as sandbox:
            return await sandbox.diff()

    async def close(self, why: str = "it was closed") -> None:
        """End the sandbox and leave nothing behind; may be called twice."""
        self._end(f"The sandbox is gone: {why}.")
        if self._closing is not None:
            await asyncio.shield(self._closing)

    def _expire(self) -> None:
        """End it because its time is over."""
        mend = "Give `timeout` more seconds, or call `set_timeout` before they are over."
        self._end("The sandbox is gone: its time is over.", mend)

    def _end(self, why: str, mend: str = "") -> None:
        if self._closing is None:
            self._why_gone = (why, mend)
            self._timer.cancel()
            self._closing = self._loop.create_task(self.sandbox.close())
