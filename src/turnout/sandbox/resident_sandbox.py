"""A sandbox as the rooms above see it, whatever walls its resident agent stands behind."""

import hashlib
import os
from collections.abc import AsyncIterator

from turnout.core.ids import RunId
from turnout.errors import SandboxError, ToolError
from turnout.sandbox.base import (
    Blob,
    Command,
    CommandResult,
    Exit,
    Listing,
    Output,
    PatchResult,
    SearchHit,
)
from turnout.sandbox.channel import Channel
from turnout.sandbox.inside import wire
from turnout.sandbox.inside.find import NO_EXPRESSION
from turnout.sandbox.patches import check_patch

__all__ = ["ResidentSandbox"]

_FIND_SECONDS = 30.0
_PATCH_SECONDS = 60.0
_HASH_SLICE = 4 << 20
_HASH_BYTES = 8 << 30
_RESULT_BYTES = 4 << 20
_GIT = ("git", "-c", "core.protectNTFS=true", "-c", "core.protectHFS=true")


def _path_bytes(path: str) -> bytes:
    if "\0" in path:
        raise ToolError(f"{path!r} is no path: it holds a NUL byte.")
    try:
        return os.fsencode(path)
    except UnicodeEncodeError as error:
        raise ToolError(f"{path!r} is no path: {error.reason}.") from None


class ResidentSandbox:
    """Commands and files of one sandbox, by its resident agent."""

    def __init__(
        self, run_id: RunId, isolation: str, channel: Channel, find_command: tuple[str, ...]
    ) -> None:
        self._run_id = run_id
        self._isolation = isolation
        self._channel = channel
        self._find_command = find_command

    @property
    def run_id(self) -> RunId:
        """The run that the sandbox belongs to."""
        return self._run_id

    @property
    def isolation(self) -> str:
        """The walls that hold."""
        return self._isolation

    async def exec(self, command: Command) -> AsyncIterator[Output | Exit]:
        """Run a command and pass on what it prints; the last item is its `Exit`."""
        if bool(command.argv) == (command.shell is not None):
            raise SandboxError("A command has either arguments or a line for the shell.")
        async for item in self._channel.exec(command):
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
        await self._channel.request(wire.KILL_ALL, b"")

    async def read(self, path: str, *, offset: int = 0, limit: int = 1 << 20) -> Blob:
        """Read a regular file beneath the workspace; `ToolError` where it is none."""
        if offset < 0 or limit < 0:
            raise ToolError("Offset and limit of a read are not negative.")
        size, mode, data = await self._slice(path, offset, limit)
        while len(data) < min(limit, size - offset):
            _, _, more = await self._slice(path, offset + len(data), limit - len(data))
            if not more:
                break
            data += more
        whole = offset == 0 and len(data) == size
        digest = hashlib.sha256(data).hexdigest() if whole else await self._digest(path, size)
        return Blob(data, size, mode, digest)

    async def _slice(self, path: str, offset: int, limit: int) -> tuple[int, int, bytes]:
        head = b"%d\0%d\0" % (offset, limit)
        reply = await self._channel.request(wire.READ_FILE, head + _path_bytes(path))
        if not reply.done or len(reply.payload) < wire.READ.size:
            raise ToolError(f"{path} cannot be read: {_text(reply.payload)}.")
        size, mode = wire.READ.unpack_from(reply.payload)
        return size, mode & 0o777, reply.payload[wire.READ.size :]

    async def _digest(self, path: str, size: int) -> str:
        """Hash a file that one read did not show whole."""
        if size > _HASH_BYTES:
            raise ToolError(f"{path} is too large.", mend="Read a part of it by a command.")
        digest = hashlib.sha256()
        done = 0
        while done < size:
            _, _, data = await self._slice(path, done, _HASH_SLICE)
            if not data:
                break
            digest.update(data)
            done += len(data)
        return digest.hexdigest()

    async def write(
        self, path: str, data: bytes, *, mode: int | None = None, expect_sha256: str | None = None
    ) -> None:
        """Write a whole file beneath the workspace, making its folders, atomically."""
        name = _path_bytes(path)
        if expect_sha256 is not None:
            found = await self.read(path, limit=_HASH_SLICE)
            if found.sha256 != expect_sha256:
                raise ToolError(
                    f"{path} is not the file that was read.", mend="Read it again before writing."
                )
        head = b"%d\0" % (-1 if mode is None else mode & 0o777)
        reply = await self._channel.upload(head + name, data)
        if not reply.done:
            raise ToolError(f"{path} cannot be written: {_text(reply.payload)}.")

    async def list(self, pattern: str = "**/*", *, limit: int = 200) -> Listing:
        """Return the files that match a glob; ignored and internal ones are left out."""
        fields = await self._find("list", pattern, str(max(0, limit)))
        total = _number(fields[0]) if fields else 0
        return Listing(tuple(os.fsdecode(path) for path in fields[1:]), total)

    async def search(
        self, pattern: str, *, glob: str = "**/*", limit: int = 100
    ) -> tuple[SearchHit, ...]:
        """Return lines that match a regular expression; `ToolError` where it is none."""
        fields = await self._find("search", pattern, glob, str(max(0, limit)))
        rows = zip(fields[::3], fields[1::3], fields[2::3], strict=False)
        return tuple(
            SearchHit(os.fsdecode(path), _number(line), text.decode(errors="backslashreplace"))
            for path, line, text in rows
        )

    async def _find(self, *arguments: str) -> tuple[bytes, ...]:
        for argument in arguments:
            _path_bytes(argument)
        command = Command(
            (*self._find_command, *arguments),
            env={"GIT_OPTIONAL_LOCKS": "0"},
            timeout=_FIND_SECONDS,
            head=_RESULT_BYTES,
            tail=0,
        )
        result = await self.run(command)
        if result.exit.reason == "timeout":
            raise ToolError("The search took too long.", mend="Use a simpler pattern or glob.")
        if result.exit.code == NO_EXPRESSION:
            raise ToolError(f"This is no regular expression: {_text(result.stderr)}.")
        if not result.ok:
            raise ToolError(f"The search failed: {_text(result.stderr)[-400:]}")
        return tuple(result.stdout.split(b"\0")[:-1])

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


def _number(digits: bytes) -> int:
    """Return a count; 0 where what came out of the sandbox is none."""
    return int(digits) if digits.isdigit() and len(digits) < 16 else 0


def _text(data: bytes) -> str:
    return data.decode(errors="backslashreplace").strip()
