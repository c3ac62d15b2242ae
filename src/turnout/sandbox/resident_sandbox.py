"""A sandbox as the rooms above see it, whatever walls its resident agent stands behind."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from turnout.core.ids import RunId
from turnout.core.runs import Patch
from turnout.errors import SandboxError, ToolError
from turnout.sandbox.base import (
    Blob,
    Command,
    CommandResult,
    Connection,
    Exit,
    LayerRef,
    Limits,
    Listing,
    Output,
    PatchResult,
    Sandbox,
    SandboxUsage,
    SearchHit,
)
from turnout.sandbox.channel import Channel
from turnout.sandbox.inside import wire
from turnout.sandbox.inside.find import NO_EXPRESSION
from turnout.sandbox.patches import check_patch, names_git
from turnout.sandbox.resident.lifetime import Lifetime, Timers

__all__ = ["ConnectionLog", "Fittings", "ResidentSandbox"]

_FIND_SECONDS = 30.0
_PATCH_SECONDS = 60.0
_SLICE = 4 << 20
_HASH_BYTES = 4 << 30
_TEXT_BYTES = 4000
_RESULT_BYTES = 4 << 20
_GIT = ("git", "-c", "core.protectNTFS=true", "-c", "core.protectHFS=true")

_Run = Callable[[Command], Awaitable[CommandResult]]


async def _slice(channel: Channel, path: str, offset: int, limit: int) -> tuple[int, int, bytes]:
    """Return size and mode of a file and as much of it as one frame holds."""
    limit = min(limit, _SLICE)
    head = b"%d\0%d\0" % (offset, limit)
    reply = await channel.request(wire.READ_FILE, head + _path_bytes(path))
    if not reply.done or len(reply.payload) < wire.READ.size:
        raise ToolError(f"{path} cannot be read: {_text(reply.payload)}.")
    size, mode = wire.READ.unpack_from(reply.payload)
    expected = max(0, min(limit, size - offset))
    data = reply.payload[wire.READ.size :][:expected]
    if len(data) < expected:
        raise ToolError(f"{path} changed while it was read.", mend="Read it again.")
    return size, mode & 0o777, data


async def _digest(channel: Channel, path: str, size: int) -> str:
    """Hash a file that one read did not show whole."""
    if size > _HASH_BYTES:
        raise ToolError(f"{path} is too large.", mend="Read a part of it by a command.")
    digest = hashlib.sha256()
    done = 0
    while done < size:
        _, _, data = await _slice(channel, path, done, _SLICE)
        if not data:
            break
        digest.update(data)
        done += len(data)
    return digest.hexdigest()


def _path_bytes(path: str) -> bytes:
    if "\0" in path:
        raise ToolError(f"{path!r} is no path: it holds a NUL byte.")
    try:
        return os.fsencode(path)
    except UnicodeEncodeError as error:
        raise ToolError(f"{path!r} is no path: {error.reason}.") from None


class ConnectionLog(Protocol):
    """What knows of the connections that something inside asked for."""

    def connections(self) -> tuple[Connection, ...]:
        """Return them, oldest first."""
        ...


@dataclass(frozen=True, slots=True)
class Fittings:
    """What a sandbox is, beside its walls and the channel to its agent."""

    run_id: RunId
    isolation: str
    """The walls that hold, as in `Capabilities.isolation`."""
    find: tuple[str, ...]
    """The command inside that runs our `find.py`, without its arguments."""
    limits: Limits
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment of every command: over `BASE_ENV`, under the command's own."""
    gate: ConnectionLog | None = None
    """None: nothing outside can be reached."""


async def _found(run: _Run, find: tuple[str, ...], *arguments: str) -> tuple[bytes, ...]:
    """Return the fields that our program for listing and searching prints."""
    for argument in arguments:
        _path_bytes(argument)
    command = Command(
        (*find, *arguments),
        env={"GIT_OPTIONAL_LOCKS": "0"},
        timeout=_FIND_SECONDS,
        head=_RESULT_BYTES,
        tail=0,
    )
    result = await run(command)
    if result.exit.reason == "timeout":
        raise ToolError("The search took too long.", mend="Use a simpler pattern or glob.")
    if result.exit.code == NO_EXPRESSION:
        raise ToolError(f"This is no regular expression: {_text(result.stderr)}.")
    if not result.ok:
        raise ToolError(f"The search failed: {_text(result.stderr)[-400:]}")
    return tuple(result.stdout.split(b"\0")[:-1])


class ResidentSandbox:
    """Commands and files of one sandbox, by its resident agent.

    What depends on the walls (`diff`, `snapshot`, `fork`, what of a machine is used) is a driver's
    to add. Everything is frozen after a time without a call, and ended after its lifetime.
    """

    def __init__(
        self, fittings: Fittings, channel: Channel, *, timers: Timers | None = None
    ) -> None:
        self._fittings = fittings
        self._channel = channel
        loop = asyncio.get_running_loop()
        self._lifetime = Lifetime(fittings.limits, channel, self._expire, timers or loop)
        self._expired: asyncio.Task[None] | None = None
        channel.when_ended(self._lifetime.stop)

    @property
    def run_id(self) -> RunId:
        """The run that the sandbox belongs to."""
        return self._fittings.run_id

    @property
    def isolation(self) -> str:
        """The walls that hold."""
        return self._fittings.isolation

    async def exec(self, command: Command) -> AsyncIterator[Output | Exit]:
        """Run a command and pass on what it prints; the last item is its `Exit`."""
        if bool(command.argv) == (command.shell is not None):
            raise SandboxError("A command has either arguments or a line for the shell.")
        env = {**self._fittings.variables, **command.env}
        async with self._lifetime.call():
            async for item in self._channel.exec(replace(command, env=env)):
                yield item

    async def run(self, command: Command) -> CommandResult:
        """Run a command to its end."""
        parts: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
        async for item in self.exec(command):
            if isinstance(item, Exit):
                return CommandResult(item, b"".join(parts["stdout"]), b"".join(parts["stderr"]))
            parts[item.stream].append(item.data)
        raise SandboxError("The sandbox reported no end of a command.")

    async def kill_all(self) -> None:
        """End every process inside; the sandbox stays usable."""
        async with self._lifetime.call():
            await self._channel.request(wire.KILL_ALL, b"")

    async def read(self, path: str, *, offset: int = 0, limit: int = 1 << 20) -> Blob:
        """Read a regular file beneath the workspace; `ToolError` where it is none."""
        if offset < 0 or limit < 0:
            raise ToolError("Offset and limit of a read are not negative.")
        channel = self._channel
        async with self._lifetime.call():
            size, mode, data = await _slice(channel, path, offset, limit)
            while len(data) < min(limit, size - offset):
                place, left = offset + len(data), limit - len(data)
                _, _, more = await _slice(channel, path, place, left)
                if not more:
                    break
                data += more
            if offset == 0 and len(data) == size:
                return Blob(data, size, mode, hashlib.sha256(data).hexdigest())
            return Blob(data, size, mode, await _digest(channel, path, size))

    async def write(
        self, path: str, data: bytes, *, mode: int | None = None, expect_sha256: str | None = None
    ) -> None:
        """Write a whole file beneath the workspace, making its folders, atomically."""
        name = _path_bytes(path)
        if names_git(name):
            raise ToolError(f"{path} cannot be written: files of .git are not written by tools.")
        head = b"%d\0" % (-1 if mode is None else mode & 0o777)
        async with self._lifetime.call():
            if expect_sha256 is not None:
                found = await self.read(path, limit=_SLICE)
                if found.sha256 != expect_sha256:
                    raise ToolError(
                        f"{path} is not the file that was read.",
                        mend="Read it again before writing.",
                    )
            reply = await self._channel.upload(head + name, data)
        if not reply.done:
            raise ToolError(f"{path} cannot be written: {_text(reply.payload)}.")

    async def list(self, pattern: str = "**/*", *, limit: int = 200) -> Listing:
        """Return the files that match a glob; ignored and internal ones are left out."""
        fields = await _found(self.run, self._fittings.find, "list", pattern, str(max(0, limit)))
        total = _number(fields[0]) if fields else 0
        return Listing(tuple(os.fsdecode(path) for path in fields[1:]), total)

    async def search(
        self, pattern: str, *, glob: str = "**/*", limit: int = 100
    ) -> tuple[SearchHit, ...]:
        """Return lines that match a regular expression; `ToolError` where it is none."""
        fields = await _found(
            self.run, self._fittings.find, "search", pattern, glob, str(max(0, limit))
        )
        rows = zip(fields[::3], fields[1::3], fields[2::3], strict=False)
        return tuple(
            SearchHit(os.fsdecode(path), _number(line), text.decode(errors="backslashreplace"))
            for path, line, text in rows
        )

    async def apply_patch(self, patch: bytes) -> PatchResult:
        """Apply a unified diff to the workspace, all of it or nothing."""
        try:
            files = check_patch(patch)
        except ToolError as error:
            return PatchResult(False, (), str(error))
        body = patch if patch.endswith(b"\n") else patch + b"\n"
        complaint = ""
        for options in ((), ("--recount",)):
            git = (*_GIT, "apply", "--whitespace=nowarn", *options, "-")
            result = await self.run(Command(git, stdin=body, timeout=_PATCH_SECONDS))
            if result.ok:
                return PatchResult(True, files, f"Changed {', '.join(files)}.")
            complaint = complaint or _text(result.stderr) or result.exit.error
        return PatchResult(
            False,
            (),
            f"The patch was not applied, nothing was changed: {complaint[-2000:]} "
            "Read the files again and send a patch whose context lines match them exactly.",
        )

    async def diff(self) -> Patch:
        """Compare the workspace with its base commit; a driver that has one says how."""
        raise SandboxError("This sandbox has no base to compare with.")

    async def snapshot(self) -> LayerRef:
        """Keep what was changed so far; a driver that can says how."""
        raise SandboxError(f"A sandbox with the isolation `{self.isolation}` keeps no snapshots.")

    async def fork(self, run_id: RunId) -> Sandbox:
        """Start another sandbox with the same workspace; a driver that can says how."""
        raise SandboxError(
            f"A sandbox with the isolation `{self.isolation}` cannot be forked for {run_id}."
        )

    async def pause(self) -> None:
        """Freeze everything inside; any other call thaws it first."""
        await self._lifetime.pause()

    async def resume(self) -> None:
        """Thaw it; may be called when it is not frozen."""
        await self._lifetime.resume()

    async def usage(self) -> SandboxUsage:
        """Return how long it has been there and frozen; drivers add what it has used."""
        lifetime = self._lifetime
        return SandboxUsage(None, None, lifetime.age, frozen_seconds=lifetime.frozen_seconds)

    def connections(self) -> tuple[Connection, ...]:
        """Return what was asked of the proxy so far, oldest first."""
        gate = self._fittings.gate
        return () if gate is None else gate.connections()

    async def close(self) -> None:
        """End everything inside; drivers add what else there is to end."""
        self._channel.end("it was closed")
        await self._channel.closed()

    def _expire(self, reason: str) -> None:
        mend = "Start another one, or give sandboxes a longer lifetime."
        self._channel.end(reason, mend=mend)
        self._expired = asyncio.create_task(self.close())


def _number(digits: bytes) -> int:
    """Return a count; 0 where what came out of the sandbox is none."""
    return int(digits) if digits.isdigit() and len(digits) < 16 else 0


def _text(data: bytes) -> str:
    """Return what the agent or a program said, as far as anybody reads it."""
    return data[:_TEXT_BYTES].decode(errors="backslashreplace").strip()
