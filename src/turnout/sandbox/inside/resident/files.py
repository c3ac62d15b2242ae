"""Reading and writing single files of the workspace, from within."""

from __future__ import annotations

import os
import stat
import time

from turnout.sandbox.inside.wire import (
    CANCEL,
    INPUT,
    MAX_FRAME,
    READ,
    READ_FILE,
    REFUSED,
    REPLY,
    WRITE_FILE,
    Sender,
)

__all__ = ["Files", "RefusedError", "located", "refusal_text"]

_NAMES = (b"/repo", b"/workspace")
"""What the workspace is called, wherever it is."""


class RefusedError(Exception):
    """A file operation that is not done; its text goes to the caller."""


def refusal_text(error: Exception) -> bytes:
    """Return what the caller reads about an operation that was not done."""
    if isinstance(error, OSError):
        return os.fsencode(error.strerror or "failed")
    return os.fsencode(str(error))


def located(root: bytes, path: bytes) -> bytes:
    """Return where a path leads: `/repo`, `/workspace` and relative ones into the workspace."""
    for name in _NAMES:
        if path == name or path.startswith(name + b"/"):
            return root + path[len(name) :]
    return os.path.join(root, path)


def _beneath(root: bytes, path: bytes) -> bytes:
    """Return the real path of `path`, or refuse one that leaves the workspace.

    What it resolves may be changed at once by a process inside. That is no danger: the namespace is
    the wall, and this check only keeps the tools to the workspace.
    """
    if not path or len(path) > 4096:
        raise RefusedError("the path is empty or too long")
    real = located(root, os.path.realpath(located(root, path)))
    if real != root and not real.startswith(root + b"/"):
        raise RefusedError("the path leaves the workspace")
    return real


def _names_git(path: bytes) -> bool:
    """Whether any part of `path` is a `.git`, in whatever case."""
    return b".git" in path.lower().split(b"/")


def _read_file(path: bytes, offset: int, limit: int) -> bytes:
    """Return size, mode and a slice of a regular file; never waits for a fifo or a device."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        info = os.fstat(fd)
        if stat.S_ISDIR(info.st_mode):
            raise RefusedError("it is a folder, not a file")
        if not stat.S_ISREG(info.st_mode):
            raise RefusedError("it is not a regular file")
        data = os.pread(fd, min(limit, MAX_FRAME - 64), offset)
        return READ.pack(info.st_size, info.st_mode & 0o777) + data
    finally:
        os.close(fd)


class _Upload:
    """A file being written beside its final name."""

    __slots__ = ("_fd", "_target", "_temporary")

    def __init__(self, fd: int, temporary: bytes, target: bytes) -> None:
        self._fd = fd
        self._temporary = temporary
        self._target = target

    def write(self, data: bytes) -> None:
        """Write a piece."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def commit(self) -> None:
        """Put the file in its place."""
        os.rename(self._temporary, self._target)
        os.close(self._fd)

    def abandon(self) -> None:
        """Leave everything as it was."""
        os.close(self._fd)
        if os.path.lexists(self._temporary):
            os.unlink(self._temporary)


def _begin_upload(root: bytes, path: bytes, mode: int) -> _Upload:
    """Open a temporary file beside `path`; `mode` below 0 keeps that of an existing file."""
    target = _beneath(root, path)
    if _names_git(path) or _names_git(target[len(root) :]):
        raise RefusedError("files of .git are not written by tools")
    existing = 0o644
    try:
        info = os.lstat(target)
    except FileNotFoundError:
        if path.endswith(b"/"):
            raise RefusedError("it names a folder, not a file") from None
    else:
        if not stat.S_ISREG(info.st_mode):
            raise RefusedError("it exists and is not a regular file")
        existing = info.st_mode & 0o777
    folder = os.path.dirname(target)
    os.makedirs(folder, exist_ok=True)
    temporary = os.path.join(folder, b".turnout-%d" % time.monotonic_ns())
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    os.fchmod(fd, (mode if mode >= 0 else existing) & 0o777)
    return _Upload(fd, temporary, target)


class Files:
    """Answers requests about files of the workspace at `root` by frames."""

    def __init__(self, sender: Sender, root: bytes) -> None:
        self._sender = sender
        self._root = root
        self._uploads: dict[int, _Upload] = {}

    def handle(self, kind: int, request_id: int, payload: bytes) -> bool:
        """Do what a frame asks for; False where it is not about a file."""
        try:
            if kind == READ_FILE:
                offset, limit, path = payload.split(b"\0")
                data = _read_file(_beneath(self._root, path), int(offset), int(limit))
                self._sender.send(REPLY, request_id, data)
            elif kind == WRITE_FILE:
                mode, path = payload.split(b"\0")
                self._uploads[request_id] = _begin_upload(self._root, path, int(mode))
            elif request_id not in self._uploads:
                return False
            elif kind == INPUT:
                self._write_on(request_id, payload)
            elif kind == CANCEL:
                self._uploads.pop(request_id).abandon()
            else:
                return False
        except (OSError, ValueError, RefusedError) as error:
            self._sender.send(REFUSED, request_id, refusal_text(error))
        except RecursionError:
            text = b"the path leads through too many folders or links"
            self._sender.send(REFUSED, request_id, text)
        return True

    def _write_on(self, request_id: int, data: bytes) -> None:
        """Write a piece of a file; an empty piece puts the file in its place."""
        upload = self._uploads[request_id]
        try:
            if data:
                upload.write(data)
                return
            upload.commit()
        except OSError:
            upload.abandon()
            del self._uploads[request_id]
            raise
        del self._uploads[request_id]
        self._sender.send(REPLY, request_id, b"")
