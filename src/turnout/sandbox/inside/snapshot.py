"""Runs inside sandboxes: what a run changed of its trees leaves one and is laid down in another.

    python3 -ISE snapshot.py pack NAME CHANGES BELOW MERGED [NAME ...]  > stream
    python3 -ISE snapshot.py unpack FOLDER                              < stream
    python3 -ISE snapshot.py apply FOLDER                               < stream

`CHANGES` is the writable part of an overlay, `BELOW` what lies beneath it and `MERGED` the tree as
the run sees it; nothing else may run meanwhile. Where the tree is a copy of what lies beneath,
`CHANGES` is the whole tree, and files are told apart by type, mode, size and time.

What `unpack` makes in an empty folder is a layer by itself: whatever was removed is marked as such
(a device 0/0), so that no extended attribute is needed. `apply` does to trees what was done to
those that the stream comes from.

The stream is a sequence of records, the last of kind `END`: kind, mode, time and the lengths of a
path and a body, then these. The contents of a file follow in pieces that leave its holes out.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import struct
import sys
from collections.abc import Iterator
from typing import IO, NamedTuple

__all__ = ["BrokenStreamError", "Record", "Tree", "main", "pack", "read_exactly", "unpack"]

RECORD = struct.Struct(">cIqII")
"""Kind, mode, time of the last change in nanoseconds, length of the path, length of the body."""
PIECE = struct.Struct(">QI")
"""Offset and length of a piece of a file; the piece without length says where the file ends."""

FOLDER, FILE, SYMLINK, HARDLINK, FIFO, REMOVED, END = b"D", b"F", b"L", b"H", b"P", b"X", b"E"
MOST_RECORDS = 1_000_000
MOST_NAME = 1 << 16
READ = 1 << 18
MODE = 0o1777


class BrokenStreamError(Exception):
    """What arrives is not what `pack` makes."""


class Record(NamedTuple):
    """One entry of the stream."""

    kind: bytes
    mode: int = 0
    time: int = 0
    path: bytes = b""
    """Relative, beginning with the name of the tree."""
    body: bytes = b""
    """Where a link leads to."""

    def encode(self) -> bytes:
        """Return its bytes."""
        head = RECORD.pack(self.kind, self.mode, self.time, len(self.path), len(self.body))
        return head + self.path + self.body


class Tree:
    """One tree of a run, and what of it can be read only after its mode was changed."""

    def __init__(self, name: bytes, changes: bytes, below: bytes, merged: bytes) -> None:
        self.name = name
        self._changes = changes
        self._below = below
        self._merged = merged
        self._copied = changes == merged
        self._links: dict[tuple[int, int], bytes] = {}
        self._opened: list[tuple[bytes, int]] = []

    def records(self, output: IO[bytes]) -> None:
        """Write everything that was changed, folders before what is in them."""
        waiting = [b""]
        while waiting:
            path = waiting.pop()
            facts = os.lstat(os.path.join(self._changes, path))
            output.write(self._record(FOLDER, path, facts).encode())
            self._allow(path, facts, stat.S_IRUSR | stat.S_IXUSR)
            names = os.listdir(os.path.join(self._changes, path))
            removed = self._removed(path)
            for name in sorted(names):
                inner = os.path.join(path, name)
                facts = os.lstat(os.path.join(self._changes, inner))
                if stat.S_ISDIR(facts.st_mode):
                    waiting.append(inner)
                elif stat.S_ISCHR(facts.st_mode):
                    removed.add(name)
                elif not (self._copied and self._unchanged(inner, facts)):
                    self._leaf(inner, facts, output)
            for name in sorted(removed):
                inner = os.path.join(path, name)
                output.write(Record(REMOVED, path=self._shown(inner)).encode())

    def close(self) -> None:
        """Give everything its own mode again."""
        for path, mode in reversed(self._opened):
            os.chmod(path, mode)

    def _shown(self, path: bytes) -> bytes:
        return os.path.join(self.name, path) if path else self.name

    def _record(self, kind: bytes, path: bytes, facts: os.stat_result, body: bytes = b"") -> Record:
        return Record(kind, facts.st_mode & MODE, facts.st_mtime_ns, self._shown(path), body)

    def _removed(self, path: bytes) -> set[bytes]:
        """Return the names that are gone from a folder which lies beneath as well."""
        below = os.path.join(self._below, path)
        try:
            if not stat.S_ISDIR(os.lstat(below).st_mode):
                return set()
            before = os.listdir(below)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EACCES):
                return set()
            raise
        return set(before) - set(os.listdir(os.path.join(self._merged, path)))

    def _unchanged(self, path: bytes, facts: os.stat_result) -> bool:
        """Whether an entry of a copied tree is still that which lies beneath."""
        below = os.path.join(self._below, path)
        try:
            before = os.lstat(below)
        except OSError:
            return False
        if stat.S_ISLNK(facts.st_mode) and stat.S_ISLNK(before.st_mode):
            return os.readlink(below) == os.readlink(os.path.join(self._merged, path))
        return (facts.st_mode, facts.st_size, facts.st_mtime_ns) == (
            before.st_mode,
            before.st_size,
            before.st_mtime_ns,
        )

    def _allow(self, path: bytes, facts: os.stat_result, needed: int) -> None:
        """Make an entry readable for its owner until `close`; both views are of the same file."""
        if facts.st_mode & needed != needed:
            merged = os.path.join(self._merged, path)
            os.chmod(merged, stat.S_IMODE(facts.st_mode) | needed)
            self._opened.append((merged, stat.S_IMODE(facts.st_mode)))

    def _leaf(self, path: bytes, facts: os.stat_result, output: IO[bytes]) -> None:
        """Write what is no folder; sockets are left out, for nobody listens any more."""
        if facts.st_nlink > 1:
            key = (facts.st_dev, facts.st_ino)
            if key in self._links:
                output.write(self._record(HARDLINK, path, facts, self._links[key]).encode())
                return
            self._links[key] = self._shown(path)
        if stat.S_ISREG(facts.st_mode):
            self._allow(path, facts, stat.S_IRUSR)
            output.write(self._record(FILE, path, facts).encode())
            with open(os.path.join(self._changes, path), "rb", buffering=0) as file:
                for piece in _pieces(file.fileno()):
                    output.write(piece)
        elif stat.S_ISLNK(facts.st_mode):
            target = os.readlink(os.path.join(self._changes, path))
            output.write(self._record(SYMLINK, path, facts, target).encode())
        elif stat.S_ISFIFO(facts.st_mode):
            output.write(self._record(FIFO, path, facts).encode())


def _pieces(fd: int) -> Iterator[bytes]:
    """Yield the pieces of a file without its holes."""
    position = 0
    while True:
        try:
            position = os.lseek(fd, position, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            break
        hole = os.lseek(fd, position, os.SEEK_HOLE)
        while position < hole:
            data = os.pread(fd, min(READ, hole - position), position)
            if not data:
                break
            yield PIECE.pack(position, len(data))
            yield data
            position += len(data)
    yield PIECE.pack(os.fstat(fd).st_size, 0)


def pack(arguments: list[bytes], output: IO[bytes]) -> None:
    """Write the stream of all trees."""
    for start in range(0, len(arguments), 4):
        tree = Tree(*arguments[start : start + 4])
        try:
            tree.records(output)
        finally:
            tree.close()
    output.write(Record(END).encode())
    output.flush()


def read_exactly(stream: IO[bytes], size: int) -> bytes:
    """Return so many bytes; fewer are an error."""
    data = stream.read(size)
    if len(data) != size:
        raise BrokenStreamError("it ends too early")
    return data


def _record(stream: IO[bytes]) -> Record:
    kind, mode, time, path_length, body_length = RECORD.unpack(read_exactly(stream, RECORD.size))
    if max(path_length, body_length) > MOST_NAME:
        raise BrokenStreamError("a name in it is too long")
    path, body = read_exactly(stream, path_length), read_exactly(stream, body_length)
    for name in (path, body) if kind == HARDLINK else (path,):
        if name.startswith(b"/") or b".." in name.split(b"/") or b"\0" in name:
            raise BrokenStreamError("a name in it leads elsewhere")
    return Record(kind, mode & MODE, time, path, body)


def unpack(folder: bytes, stream: IO[bytes], *, over: bool = False) -> tuple[int, int]:
    """Lay a layer down in an empty folder; returns its entries and the bytes of its files.

    `over`: the folder holds trees, which are changed.
    """
    folders: list[tuple[bytes, Record]] = []
    size = 0
    for count in range(MOST_RECORDS):
        record = _record(stream)
        if record.kind == END:
            for path, made in reversed(folders):
                _settle(path, made)
            return count, size
        path = os.path.join(folder, record.path)
        if over:
            _make_way(path, record.kind == FOLDER)
        if record.kind == FOLDER:
            if not os.path.lexists(path):
                os.mkdir(path)
            os.chmod(path, 0o700)
            folders.append((path, record))
        elif record.kind == FILE:
            size += _file(path, stream)
            _settle(path, record)
        elif record.kind == REMOVED:
            if not over:
                os.mknod(path, stat.S_IFCHR, os.makedev(0, 0))
        else:
            _special(path, folder, record)
    raise BrokenStreamError(f"it holds more than {MOST_RECORDS} entries")


def _make_way(path: bytes, for_folder: bool) -> None:
    """Remove what is in the way of an entry; a folder is not in the way of a folder."""
    try:
        is_folder = stat.S_ISDIR(os.lstat(path).st_mode)
    except FileNotFoundError:
        return
    if not is_folder:
        os.unlink(path)
    elif not for_folder:
        shutil.rmtree(path)


def _special(path: bytes, folder: bytes, record: Record) -> None:
    """Make what is neither a file nor a folder."""
    if record.kind == SYMLINK:
        os.symlink(record.body, path)
        os.utime(path, ns=(record.time, record.time), follow_symlinks=False)
    elif record.kind == HARDLINK:
        os.link(os.path.join(folder, record.body), path, follow_symlinks=False)
    elif record.kind == FIFO:
        os.mkfifo(path)
        _settle(path, record)
    else:
        raise BrokenStreamError("it holds something unknown")


def _settle(path: bytes, record: Record) -> None:
    os.utime(path, ns=(record.time, record.time))
    os.chmod(path, record.mode)


def _file(path: bytes, stream: IO[bytes]) -> int:
    """Write a file and return how many of its bytes are no holes."""
    written = 0
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        while True:
            offset, length = PIECE.unpack(read_exactly(stream, PIECE.size))
            if not length:
                os.ftruncate(fd, offset)
                return written
            if length > READ:
                raise BrokenStreamError("a piece in it is too long")
            rest = memoryview(read_exactly(stream, length))
            written += length
            while rest:
                done = os.pwrite(fd, rest, offset)
                offset += done
                rest = rest[done:]
    finally:
        os.close(fd)


def main(arguments: list[bytes]) -> None:
    """Do what the first argument says."""
    what, *others = arguments
    try:
        if what == b"pack":
            pack(others, sys.stdout.buffer)
            return
        count, size = unpack(others[0], sys.stdin.buffer, over=what == b"apply")
    except BrokenStreamError as error:
        sys.exit(f"The stream is broken: {error}.")
    except OSError as error:
        sys.exit(f"{error.strerror}: {os.fsencode(error.filename or b'')[:100]!r}")
    sys.stdout.write(f'{{"entries": {count}, "bytes": {size}}}')


if __name__ == "__main__":
    main([os.fsencode(argument) for argument in sys.argv[1:]])
