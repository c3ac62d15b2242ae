"""Small inputs that ask for much: patches, and the stream from which the collector unpacks a tree.

Each is answered in time, by a result or a refusal, and costs the service little memory.
"""

import asyncio
import io
import resource
import tarfile
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from turnout.errors import SandboxError
from turnout.sandbox.base import Command, Exit, Output, Sandbox
from turnout.sandbox.bubblewrap import BubblewrapDriver
from turnout.sandbox.collector import collect_patch
from turnout.testing.repositories import TinyRepository
from turnout.testing.sandbox import ScriptedSandbox

pytestmark = pytest.mark.abuse

SECONDS = 20
MEGABYTES = 400
"""What the service may grow by, over whatever the input itself takes several times."""
HEAD = b"--- a/a.txt\n+++ b/a.txt\n"
NEW = b"--- /dev/null\n+++ b/%s\n@@ -0,0 +1 @@\n+x\n"
PATCHES = {
    "counts of thousands of digits": HEAD + b"@@ -1,%s +1,%s @@\n one\n" % ((b"9" * 5000,) * 2),
    "a start of thousands of digits": HEAD + b"@@ -%s +1 @@\n one\n" % (b"9" * 5000),
    "counts beyond any file": HEAD + b"@@ -1,99999999999 +1,99999999999 @@\n one\n",
    "counts beyond a machine's numbers": HEAD + b"@@ -1,%d +1,%d @@\n one\n" % (1 << 64, 1 << 64),
    "hunks without number": HEAD + b"@@ -1 +1 @@\n-one\n+two\n" * 100_000,
    "empty hunks without number": HEAD + b"@@ -0,0 +0,0 @@\n" * 200_000,
    "a line of megabytes": HEAD + b"@@ -1 +1 @@\n-one\n+" + b"x" * (16 << 20) + b"\n",
    "lines without number": HEAD + b"@@ -1,2 +1,500002 @@\n one\n" + b"+\n" * 500_000 + b" two\n",
    "files without number": b"".join(NEW % b"f%d" % n for n in range(20_000)),
    "a path of thousands of folders": NEW % (b"d/" * 3000 + b"f"),
    "a name beyond any file system": NEW % (b"n" * 5000),
    "a quoted name of a megabyte": NEW % (b'"b/' + b"\\101" * 250_000 + b'"'),
    "headers without a file": b"--- \n" * 300_000,
    "a binary patch that unpacks to more": (
        b"diff --git a/z b/z\nnew file mode 100644\nindex 0000000..1111111\n"
        b"GIT binary patch\nliteral 4000000000\nzcmV+b0RR6000031\n\nliteral 0\nHcmV?d00001\n\n"
    ),
    "a name that is no text": NEW % b"\xff\xfe\0",
}


def peak() -> int:
    """Return the most memory that this process ever had, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


@pytest.mark.parametrize("name", PATCHES)
async def test_a_patch_that_asks_for_much_is_answered(workspace: Sandbox, name: str) -> None:
    """Applied or refused, it is never an error of ours, and the sandbox goes on."""
    before = peak()
    async with asyncio.timeout(SECONDS):
        result = await workspace.apply_patch(PATCHES[name])
        assert (await workspace.run(Command(("true",)))).ok
    assert result.message
    assert len(result.message) < 1_000_000
    assert peak() - before < MEGABYTES


def planted() -> bool:
    """Whether a name of these inputs is there on the host."""
    return Path("/tmp/pwn").exists()


class Hostile(ScriptedSandbox):
    """A run's sandbox whose every command prints the same bytes: its programs lie."""

    def __init__(self, stream: bytes) -> None:
        super().__init__()
        self._stream = stream

    async def exec(self, command: Command) -> AsyncIterator[Output | Exit]:
        """Print the stream and end well."""
        for start in range(0, len(self._stream), 1 << 18):
            yield Output("stdout", self._stream[start : start + (1 << 18)])
        yield Exit("exited", 0, None, 0.1, len(self._stream), 0, 0, 0)


def entry(name: str, kind: bytes = tarfile.REGTYPE, **fields: object) -> tarfile.TarInfo:
    """Return one entry of an archive."""
    info = tarfile.TarInfo(name)
    info.type = kind
    info.mode = 0o644
    for field, value in fields.items():
        setattr(info, field, value)
    return info


def archive(*entries: tarfile.TarInfo, data: bytes = b"evil\n") -> bytes:
    """Return an archive whose regular files hold `data`."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for info in entries:
            body = data if info.isreg() else b""
            info.size = len(body)
            tar.addfile(info, io.BytesIO(body))
    return stream.getvalue()


def many() -> bytes:
    """Return an archive of the same empty file, more often than anybody has files."""
    return archive(entry("x"), data=b"")[:512] * 60_000


def sparse() -> bytes:
    """Return an archive of one file that claims to be a terabyte of nothing."""
    header = bytearray(archive(entry("big", b"S"), data=b"")[:512])
    header[386:410] = b"%011o\0%011o\0" % (1 << 32, 0)
    header[483:495] = b"\x80\0\0\0\1" + bytes(7)
    header[148:156] = b"        "
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + bytes(1024)


STREAMS: dict[str, Callable[[], bytes]] = {
    "names that leave the tree": lambda: archive(
        entry("../../tmp/pwn"), entry("/tmp/pwn"), entry("/repo/.git/config"), entry("a/../../x")
    ),
    "a link, then a file through it": lambda: archive(
        entry("l", tarfile.SYMTYPE, linkname="/tmp/home"), entry("l/pwn")
    ),
    "hard links to files of the collector": lambda: archive(
        entry("h1", tarfile.LNKTYPE, linkname="/etc/passwd"),
        entry("h2", tarfile.LNKTYPE, linkname="/base.git/HEAD"),
    ),
    "devices and pipes": lambda: archive(
        entry("dev", tarfile.CHRTYPE, devmajor=1, devminor=1), entry("pipe", tarfile.FIFOTYPE)
    ),
    "files of other modes and owners": lambda: archive(
        entry("su", mode=0o6755, uid=0, gid=0), entry("none", mode=0)
    ),
    "git's own files": lambda: archive(entry(".git/config"), entry(".GIT/hooks/pre-commit")),
    "a file that claims a terabyte": sparse,
    "files without number": many,
    "an archive cut short": lambda: archive(entry("x"), data=b"x" * 100_000)[:5000],
    "no archive": lambda: b"\xff\x00garbage" * 100_000,
    "a compressed archive": lambda: b"\x1f\x8b\x08\0\0\0\0\0\0\3" + bytes(100_000),
    "nothing": lambda: b"",
}


@pytest.mark.parametrize("name", STREAMS)
async def test_a_stream_that_lies_about_the_tree_is_got_over(
    driver: BubblewrapDriver, repository: TinyRepository, name: str
) -> None:
    """The collector says what it found or that it could not; nothing of itself is in the patch."""
    before, commit = peak(), repository.head
    history = repository.path / ".git"
    stream = STREAMS[name]()
    shown = b""
    async with asyncio.timeout(60):
        with suppress(SandboxError):
            shown = (await collect_patch(driver, Hostile(stream), history, commit)).diff
    assert b"root:x:0" not in shown
    assert b"ref: refs/heads" not in shown
    assert b"mode 104755" not in shown
    assert not any(b".git/" in line.lower() for line in shown.split(b"\n"))
    assert not planted()
    assert peak() - before < MEGABYTES + (len(stream) >> 20)
