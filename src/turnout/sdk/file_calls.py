"""Files anywhere in a sandbox.

In the workspace its own file calls do the work. Elsewhere small programs do, which get the path as
an argument: nothing is ever made part of a line for the shell.
"""

import os
import posixpath
from dataclasses import dataclass
from typing import Final, Literal, NoReturn

from turnout.errors import ToolError
from turnout.sandbox.base import REPO, WORKSPACE, Command, CommandResult
from turnout.sdk.box import Box

__all__ = ["FileCalls", "FileInfo", "FileKind", "Path"]

Path = str | os.PathLike[str]

FileKind = Literal["file", "folder", "link", "other"]

_MOST_BYTES: Final = 64 << 20
_MOST_NAMES: Final = 4 << 20
_SECONDS: Final = 60.0
_MISSING: Final = 21
_FOLDER: Final = 22
_ODD: Final = 23
_WHY: Final = {
    _MISSING: "No such file or directory",
    _FOLDER: "it is a folder, not a file",
    _ODD: "it is not a regular file",
}
_READ: Final = f"""\
[ -e "$1" ] || exit {_MISSING}
[ -d "$1" ] && exit {_FOLDER}
[ -f "$1" ] || exit {_ODD}
exec head -c "$2" "$1"
"""
_WRITE: Final = f"""\
[ -d "$1" ] && exit {_FOLDER}
[ -f "$1" ] || [ ! -e "$1" ] || exit {_ODD}
mkdir -p "$2" && exec cat > "$1"
"""
_EXISTS: Final = '[ -e "$1" ]'
_REMOVE: Final = f"""\
[ -e "$1" ] || [ -L "$1" ] || exit {_MISSING}
exec rm -rf "$1"
"""
_MAKE: Final = 'exec mkdir -p "$1"'
_LIST: Final = """\
import os, sys
write = sys.stdout.buffer.write
try:
    entries = list(os.scandir(os.fsencode(sys.argv[1])))
except OSError as error:
    sys.exit(error.strerror)
for entry in entries:
    folder, file = entry.is_dir(follow_symlinks=False), entry.is_file(follow_symlinks=False)
    kind = b"folder" if folder else b"file" if file else b"link" if entry.is_symlink() else b"other"
    size = entry.stat(follow_symlinks=False).st_size if file else 0
    write(b"%s\\0%d\\0%s\\0" % (kind, size, entry.name))
"""
_KINDS: Final[dict[bytes, FileKind]] = {
    b"file": "file",
    b"folder": "folder",
    b"link": "link",
    b"other": "other",
}


@dataclass(frozen=True, slots=True)
class FileInfo:
    """What a folder says of one thing in it."""

    name: str
    path: str
    """Absolute."""
    kind: FileKind
    """`file`, `folder`, `link` or `other`."""
    size: int
    """Bytes of a file; else 0."""


class FileCalls:
    """Reads and writes files of one sandbox; `ToolError` says of each what cannot be done."""

    def __init__(self, box: Box) -> None:
        self._box = box

    async def read_bytes(self, path: Path) -> bytes:
        """Return a regular file of at most 64 MiB."""
        place = _Place.of(path, "read")
        if not place.inside:
            return await self._read_elsewhere(place)
        with self._box.awake() as sandbox:
            blob = await sandbox.read(place.given, limit=_MOST_BYTES + 1)
        return place.checked(blob.data)

    async def read_text(self, path: Path, encoding: str, errors: str) -> str:
        """Return a regular file as text; `ToolError` where `errors` lets no other bytes pass."""
        data = await self.read_bytes(path)
        try:
            return data.decode(encoding, errors)
        except (UnicodeDecodeError, LookupError) as error:
            raise _Place.of(path, "read").refused(str(error)) from None

    async def write(self, path: Path, data: str | bytes) -> None:
        """Write a whole file, making its folders."""
        place = _Place.of(path, "written")
        try:
            content = data.encode() if isinstance(data, str) else bytes(data)
        except UnicodeEncodeError as error:
            raise place.refused(f"the text cannot be UTF-8: {error.reason}") from None
        if not place.inside:
            await self._do(place, _WRITE, posixpath.dirname(place.path), stdin=content)
            return
        with self._box.awake() as sandbox:
            await sandbox.write(place.given, content)

    async def exists(self, path: Path) -> bool:
        """Say whether there is a file or folder; a link to nothing is none."""
        place = _Place.of(path, "looked for")
        result = await self._box.plain(*_shell(_EXISTS), place.path, timeout=_SECONDS)
        return result.ok

    async def list(self, path: Path) -> tuple[FileInfo, ...]:
        """Return what is in a folder, by name."""
        place = _Place.of(path, "listed")
        argv = ("python3", "-ISE", "-c", _LIST, place.path)
        command = Command(argv, timeout=_SECONDS, head=_MOST_NAMES, tail=0)
        with self._box.awake() as sandbox:
            result = await sandbox.run(command)
        if not result.ok:
            place.fail(result)
        if result.exit.stdout_omitted:
            raise place.refused("it holds too many names")
        fields = result.stdout.split(b"\0")
        rows = zip(fields[::3], fields[1::3], fields[2::3], strict=False)
        found = [place.entry(name, kind, size) for kind, size, name in rows]
        return tuple(sorted(found, key=lambda entry: entry.name))

    async def remove(self, path: Path) -> None:
        """Remove a file, or a folder with all that is in it."""
        await self._do(_Place.of(path, "removed"), _REMOVE)

    async def make_dir(self, path: Path) -> None:
        """Make a folder and those above it; one that is there stays as it is."""
        await self._do(_Place.of(path, "made"), _MAKE)

    async def _do(self, place: "_Place", script: str, *more: str, stdin: bytes = b"") -> None:
        argv = (*_shell(script), place.path, *more)
        result = await self._box.plain(*argv, stdin=stdin, timeout=_SECONDS)
        if not result.ok:
            place.fail(result)

    async def _read_elsewhere(self, place: "_Place") -> bytes:
        argv = (*_shell(_READ), place.path, str(_MOST_BYTES + 1))
        with self._box.awake() as sandbox:
            result = await sandbox.run(Command(argv, timeout=_SECONDS, raw=True))
        if not result.ok:
            place.fail(result)
        return place.checked(result.stdout)


@dataclass(frozen=True, slots=True)
class _Place:
    """A path that a caller gave, and what is wanted there."""

    given: str
    path: str
    """The same, absolute."""
    verb: str

    @classmethod
    def of(cls, path: Path, verb: str) -> "_Place":
        given = os.fspath(path)
        place = cls(given, posixpath.join(WORKSPACE, given), verb)
        if not given:
            raise place.refused("the path is empty")
        try:
            data = os.fsencode(given)
        except UnicodeEncodeError as error:
            raise place.refused(error.reason) from None
        if b"\0" in data:
            raise place.refused("the path holds a NUL byte")
        return place

    @property
    def inside(self) -> bool:
        """Whether it is in the workspace, as far as its words tell."""
        whole = posixpath.normpath(self.path)
        return any(whole == root or whole.startswith(f"{root}/") for root in (WORKSPACE, REPO))

    def checked(self, data: bytes) -> bytes:
        if len(data) > _MOST_BYTES:
            raise self.refused(f"it is larger than {_MOST_BYTES >> 20} MiB")
        return data

    def entry(self, name: bytes, kind: bytes, size: bytes) -> FileInfo:
        shown = os.fsdecode(name)
        number = int(size) if size.isdigit() and len(size) < 16 else 0
        path = posixpath.normpath(posixpath.join(self.path, shown))
        return FileInfo(shown, path, _KINDS.get(kind, "other"), number)

    def refused(self, why: str) -> ToolError:
        return ToolError(f"{self.given} cannot be {self.verb}: {why}.")

    def fail(self, result: CommandResult) -> NoReturn:
        """Raise what became of a program of ours."""
        code = result.exit.code
        said = result.stderr.decode(errors="backslashreplace").strip().splitlines()
        why = _WHY.get(code or 0) or (said[-1][-400:] if said else result.exit.reason)
        raise self.refused(why.removesuffix("."))


def _shell(script: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", script, "sh")
