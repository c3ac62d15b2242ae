"""Layers on the host: what runs have changed, for other sandboxes to start from.

`kept/KEY/layer` holds a folder for each tree, as `inside/snapshot.py` lays it down. Where trees are
copied instead of being laid over others, `kept/KEY/stream` holds what that program has sent; so it
does until it was sent on to other machines, and where it came from one of them, until a sandbox is
started on it. Either never changes, and the host passes the bytes on without reading any of them.
"""

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from secrets import token_hex

from pydantic import BaseModel, ValidationError

from turnout.core.ids import RunId
from turnout.errors import SandboxError
from turnout.sandbox.bare import BASE_TREE, BASE_VENV, BareStarter
from turnout.sandbox.base import (
    REPO,
    VENV,
    BaseRef,
    Command,
    CommandResult,
    Exit,
    LayerRef,
    Limits,
    Mount,
    Sandbox,
)
from turnout.sandbox.channel import Channel
from turnout.sandbox.walls.arguments import FILES_INSIDE
from turnout.sandbox.walls.launch import CHANGES_INSIDE
from turnout.sandbox.workspace.building import building, discard
from turnout.sandbox.workspace.folders import readable, short_hash, traversable
from turnout.sandbox.workspace.use import touched

__all__ = ["Layers", "Packing", "read_pieces", "write_pieces"]

_KEY = re.compile(r"[0-9a-f]{32}")
_CONTENTS = "layer"
_STREAM = "stream"
_TREES = ("repo", "venv")
_PIECE = 1 << 18
_TARGET = "/layer"
_TIMEOUT = 600.0
_LIMITS = Limits(file_bytes=1 << 40)
_RECORD_BYTES = 1024
"""What an entry may take beside its contents, on average."""
_COMPLAINT_BYTES = 4_000


class _Laid(BaseModel):
    entries: int
    bytes: int


class Packing:
    """What a frozen sandbox has changed, past the ways of its channel that would thaw it."""

    def __init__(self, channel: Channel, limits: Limits, python: str, *, copied: bool) -> None:
        self.copied = copied
        """The workspace is a copy of its base, and `/venv` was not to be changed."""
        self._channel = channel
        self._left = limits.disk_bytes + limits.inodes * _RECORD_BYTES
        self._python = python
        self._exit: Exit | None = None
        self._complaint = b""

    async def stream(self) -> AsyncIterator[bytes]:
        """Yield it; a sandbox that sends too much is cut off."""
        argv = [self._python, "-ISE", f"{FILES_INSIDE}/snapshot.py", "pack"]
        if self.copied:
            argv += ["repo", REPO, BASE_TREE, REPO]
        else:
            argv += ["repo", f"{CHANGES_INSIDE}/repo", BASE_TREE, REPO]
            argv += ["venv", f"{CHANGES_INSIDE}/venv", BASE_VENV, VENV]
        command = Command(tuple(argv), cwd="/", raw=True, timeout=_TIMEOUT)
        async for item in self._channel.exec(command):
            if isinstance(item, Exit):
                self._exit = item
            elif item.stream == "stderr":
                self._complaint = (self._complaint + item.data)[-_COMPLAINT_BYTES:]
            else:
                self._left -= len(item.data)
                if self._left < 0:
                    return
                yield item.data

    def check(self) -> None:
        """Raise where it is known why it did not come to a good end."""
        if self._left < 0:
            raise SandboxError("More was changed than a snapshot may hold.")
        if self._exit is not None and (self._exit.reason != "exited" or self._exit.code != 0):
            said = self._complaint.decode(errors="backslashreplace").strip().splitlines()
            why = said[-1][:300] if said else self._exit.error or self._exit.reason
            raise SandboxError(f"What was changed cannot be read: {why}")


class Layers:
    """The layers of one state folder."""

    def __init__(self, state_dir: Path, *, streams: bool = False) -> None:
        """Keep the `streams` of new layers, to be sent on to other machines."""
        self._state_dir = state_dir
        self._streams = streams
        self.folder = state_dir / "kept"

    async def keep(
        self, starter: BareStarter, packing: Packing, base: BaseRef, below: LayerRef | None
    ) -> LayerRef:
        """Keep what a sandbox has changed; equal changes of one base are one layer.

        `below` is the layer that it was started on.
        """
        beneath = below.stack if below and not packing.copied else ()
        async with building(traversable(self.folder), "layer") as folder:
            stream = _Hashed(packing.stream())
            if packing.copied:
                size = await write_pieces(folder / _STREAM, aiter(stream))
            else:
                pieces = aiter(stream)
                if self._streams:
                    pieces = _copied(pieces, folder / _STREAM)
                size = await _lay_down(starter, readable(folder / _CONTENTS), pieces)
            key = short_hash(json.dumps([base.key, *beneath, packing.copied, stream.digest]))
            if not touched(self._state_dir, self.folder / key):
                _move(folder, self.folder / key)
            elif self._streams:
                # What is there already may have been made without.
                (folder / _STREAM).replace(self.folder / key / _STREAM)
        return LayerRef(key, base.key, (*beneath, key), size)

    def folders(self, base: BaseRef, layer: LayerRef) -> tuple[Path, ...]:
        """Return the folders of a layer and of those beneath it, uppermost first.

        `SandboxError` where it lies on another base, or one of them is gone.
        """
        self._check(base, layer)
        found = [self.folder / key for key in reversed(layer.stack)]
        there = [touched(self._state_dir, folder) for folder in found]
        contents = tuple(folder / _CONTENTS for folder in found)
        if not (all(there) and all(folder.is_dir() for folder in contents)):
            raise _gone(layer)
        return contents

    async def apply(self, sandbox: Sandbox, python: str, base: BaseRef, layer: LayerRef) -> None:
        """Do to a copied workspace what was done to the one that the layer was made of."""
        self._check(base, layer)
        paths = [self.folder / key / _STREAM for key in layer.stack]
        if not all(touched(self._state_dir, path.parent) and path.is_file() for path in paths):
            raise _gone(layer)
        argv = (python, "-ISE", f"{FILES_INSIDE}/snapshot.py", "apply", "/")
        for path in paths:
            command = Command(argv, cwd="/", stdin=read_pieces(path), timeout=_TIMEOUT)
            _laid(await sandbox.run(command))

    def has(self, key: str) -> bool:
        """Whether a layer is here, laid down or as a stream."""
        if not _KEY.fullmatch(key):
            return False
        folder = self.folder / key
        return (folder / _CONTENTS).is_dir() or (folder / _STREAM).is_file()

    def stream(self, key: str) -> AsyncIterator[bytes]:
        """Yield what a layer was made of; `SandboxError` where that was not kept."""
        path = self.folder / key / _STREAM
        if not _KEY.fullmatch(key) or not path.is_file():
            raise SandboxError(f"Of the layer {key[:12]} no stream was kept.")
        return read_pieces(path)

    def drop_stream(self, key: str) -> None:
        """Drop what a layer was made of, where it is laid down."""
        if _KEY.fullmatch(key) and (self.folder / key / _CONTENTS).is_dir():
            (self.folder / key / _STREAM).unlink(missing_ok=True)

    async def receive(self, key: str, stream: AsyncIterator[bytes]) -> None:
        """Keep the stream of a layer that another machine has made."""
        if not _KEY.fullmatch(key):
            raise SandboxError("The layer has no name of ours.")
        async with building(traversable(self.folder), "layer") as folder:
            await write_pieces(folder / _STREAM, stream)
            if not touched(self._state_dir, self.folder / key):
                _move(folder, self.folder / key)

    async def lay_down(self, starter: BareStarter, layer: LayerRef) -> None:
        """Lay down what of a stack was received and is still a stream."""
        for key in layer.stack:
            kept = self.folder / key
            there = not _KEY.fullmatch(key) or (kept / _CONTENTS).is_dir()
            if there or not (kept / _STREAM).is_file():
                continue
            async with building(self.folder, "layer") as folder:
                contents = readable(folder / _CONTENTS)
                await _lay_down(starter, contents, read_pieces(kept / _STREAM))
                # Of a copied workspace the stream holds one tree alone, and lies on no other.
                if all((contents / tree).is_dir() for tree in _TREES):
                    _move(contents, kept / _CONTENTS)

    def _check(self, base: BaseRef, layer: LayerRef) -> None:
        keys = (layer.key, *layer.stack)
        if layer.base_key != base.key or not all(map(_KEY.fullmatch, keys)):
            raise SandboxError("The layer is not one of this base.")
        if layer.stack[-1:] != (layer.key,):
            raise SandboxError("The layer does not name itself as the uppermost.")

    async def remove(self, layer: LayerRef) -> None:
        """Remove a layer that nothing is started on any more; those beneath it stay."""
        if _KEY.fullmatch(layer.key):
            await discard(self.folder / layer.key)


def _move(made: Path, target: Path) -> None:
    """Rename a folder, unless another process has made the same meanwhile."""
    try:
        made.rename(target)
    except OSError:
        if not target.is_dir():
            raise


class _Hashed:
    """Passes a stream on and knows its hash at the end."""

    def __init__(self, stream: AsyncIterator[bytes]) -> None:
        self._stream = stream
        self._hash = hashlib.sha256()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for data in self._stream:
            self._hash.update(data)
            yield data

    @property
    def digest(self) -> str:
        """Of what was passed on so far."""
        return self._hash.hexdigest()


async def _copied(stream: AsyncIterator[bytes], path: Path) -> AsyncIterator[bytes]:
    """Pass a stream on and write it to a file."""
    with await asyncio.to_thread(path.open, "xb") as file:
        async for data in stream:
            await asyncio.to_thread(file.write, data)
            yield data


async def write_pieces(path: Path, stream: AsyncIterator[bytes]) -> int:
    """Write a stream to a new file and return its size."""
    size = 0
    with await asyncio.to_thread(path.open, "xb") as file:
        async for data in stream:
            size += await asyncio.to_thread(file.write, data)
    return size


async def read_pieces(path: Path) -> AsyncIterator[bytes]:
    """Yield a file."""
    with await asyncio.to_thread(path.open, "rb") as file:
        while data := await asyncio.to_thread(file.read, _PIECE):
            yield data


async def _lay_down(starter: BareStarter, folder: Path, stream: AsyncIterator[bytes]) -> int:
    """Unpack in a sandbox that has nothing else; returns the bytes of all files."""
    run_id = RunId(f"keep-{token_hex(6)}")
    mounts = [Mount(str(folder), _TARGET, writable=True)]
    sandbox = await starter.start_bare(run_id, mounts, _LIMITS)
    try:
        argv = (starter.python, "-ISE", f"{FILES_INSIDE}/snapshot.py", "unpack", _TARGET)
        return _laid(await sandbox.run(Command(argv, stdin=stream, timeout=_TIMEOUT)))
    finally:
        await sandbox.close()


def _laid(result: CommandResult) -> int:
    try:
        return _Laid.model_validate_json(result.stdout).bytes
    except ValidationError:
        said = result.stderr.decode(errors="backslashreplace").strip().splitlines()
        why = said[-1][:300] if said else result.exit.error or result.exit.reason
        raise SandboxError(f"What was changed could not be laid down: {why}") from None


def _gone(layer: LayerRef) -> SandboxError:
    return SandboxError(f"The layer {layer.key[:12]} is no longer there.")
