"""Folders of the host, shown in a sandbox that shares none with us by sending them.

A folder that such a sandbox has filled comes back as one tar file, kept beneath the host's folder
and never unpacked there: the host does not look into what a sandbox made.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from secrets import token_hex
from typing import IO

from turnout.errors import SandboxError
from turnout.sandbox.base import Command, CommandResult, Exit, Mount, Sandbox

__all__ = ["bring_back", "keep", "room_for", "send", "send_file"]

_PACKED = "packed.tar"
_PIECE = 1 << 18
_TIMEOUT = 900.0
_MOST = 8 << 30
_LAST_LINES = 400
_PACK = ("tar", "--create", "--file=-", "--owner=0", "--group=0", "--numeric-owner")
_UNPACK = (
    "/bin/tar",
    "--extract",
    "--file=-",
    "--no-same-owner",
    "--no-overwrite-dir",
    "--delay-directory-restore",
    "--warning=no-timestamp",
)
_PACK_INSIDE = ("/bin/tar", "--create", "--file=-", "--sparse")


async def bring_back(sandbox: Sandbox, mounts: Sequence[Mount]) -> None:
    """Fetch what the sandbox has made in the folders of writable mounts."""
    for mount in mounts:
        if mount.writable:
            file = Path(mount.source) / _PACKED
            await keep(sandbox, (*_PACK_INSIDE, f"--directory={mount.target}", "."), file)


def room_for(folders: Sequence[Path]) -> int:
    """Return the bytes that folders take where they are sent; each is ours or brought back."""
    total = 0
    for folder in folders:
        for path, _, names in os.walk(folder):
            total += sum(Path(path, name).lstat().st_size for name in names)
    return total


async def send(sandbox: Sandbox, folder: Path, target: str) -> None:
    """Send a folder of ours, or one that was brought back, into a folder of a sandbox."""
    packed = folder / _PACKED
    if packed.is_file():
        await send_file(sandbox, packed, target)
    else:
        await _unpack(sandbox, _pack(folder), target)


async def send_file(sandbox: Sandbox, file: Path, target: str) -> None:
    """Unpack a tar file, unread by us, into a folder of a sandbox."""
    await _unpack(sandbox, _read(file), target)


async def _unpack(sandbox: Sandbox, pieces: AsyncIterator[bytes], target: str) -> None:
    command = (*_UNPACK, f"--directory={target}")
    result = await sandbox.run(Command(command, cwd="/", stdin=pieces, timeout=_TIMEOUT))
    _check(result, f"{target} could not be filled")


async def keep(sandbox: Sandbox, argv: Sequence[str], file: Path) -> int:
    """Keep what a command prints as a file, whole or not at all, and return its size."""
    made = file.with_name(f".{file.name}-{token_hex(4)}")
    try:
        with made.open("wb") as opened:
            size = await _receive(sandbox, argv, opened)
        made.rename(file)
    finally:
        made.unlink(missing_ok=True)
    return size


async def _receive(sandbox: Sandbox, argv: Sequence[str], opened: IO[bytes]) -> int:
    complaint = bytearray()
    size = 0
    command = Command(tuple(argv), cwd="/", timeout=_TIMEOUT, raw=True)
    async for item in sandbox.exec(command):
        if isinstance(item, Exit):
            _check(CommandResult(item, b"", bytes(complaint)), "A folder could not be fetched")
        elif item.stream == "stderr":
            complaint += item.data
        else:
            size += len(item.data)
            if size > _MOST:
                raise SandboxError(f"A folder of the sandbox is larger than {_MOST >> 30} GiB.")
            await asyncio.to_thread(opened.write, item.data)
    return size


def _check(result: CommandResult, what: str) -> None:
    if not result.ok:
        said = result.stderr.decode(errors="backslashreplace").strip()[-_LAST_LINES:]
        raise SandboxError(f"{what}: {said or result.exit.error or result.exit.reason}")


async def _read(path: Path) -> AsyncIterator[bytes]:
    """Yield a file in pieces."""
    with await asyncio.to_thread(path.open, "rb") as file:
        while data := await asyncio.to_thread(file.read, _PIECE):
            yield data


async def _pack(folder: Path) -> AsyncIterator[bytes]:
    """Yield a folder of ours as a tar stream."""
    process = await asyncio.create_subprocess_exec(
        *_PACK,
        f"--directory={folder}",
        ".",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        while process.stdout is not None and (data := await process.stdout.read(_PIECE)):
            yield data
        if await process.wait():
            raise SandboxError(f"{folder} cannot be read.")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
