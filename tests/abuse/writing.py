"""Rows 17 to 33: writing where nobody may, and trees that hurt whoever walks them."""

import asyncio
import os
import time
from pathlib import Path

from tests.abuse.table import HERE, SECRET, Place, Row, outcome, python, reading, shell

from turnout.errors import ToolError
from turnout.sandbox.base import Command

__all__ = ["ROWS"]

_LINKS = (
    "ln -s $OUTSIDE/secret.txt l1; ln -s / ld; ln -s /etc/passwd l2; ln -s /proc/self/environ l3; "
    "ln -s ../../../../../../..$OUTSIDE/secret.txt l4"
)
_SWAP = (
    "mkdir rr; echo inside >rr/secret.txt; "
    "(while :; do ln -sfn $OUTSIDE a; mv -T a rx; ln -sfn rr a; mv -T a rx; done) >/dev/null 2>&1 &"
)
_FILL = (
    "dd if=/dev/zero of=one bs=1M count=200; rm -f one; "
    "for n in 1 2 3; do head -c 31M /dev/zero >f$n || break; [ $n = 3 ] && echo FILLED; done; "
    "rm -f f1 f2 f3; echo kept >after; cat after"
)
_INODES = """
import os
made = 0
try:
    for folder in range(100):
        os.mkdir(f"n{folder}")
        for number in range(300):
            os.close(os.open(f"n{folder}/{number}", os.O_CREAT | os.O_WRONLY))
            made += 1
except OSError as error:
    print("stopped at", made, error.strerror)
else:
    print("MADE", made)
"""
_DEEP = """
import os
for top in ("/repo", "/tmp", "/venv"):
    os.chdir(top)
    for _ in range(3000):
        os.mkdir("d")
        os.chdir("d")
print("made")
"""
_NAMES = ("a\nb", "\udcff\udcfe", "-rf", "n" * 255)


async def _special_files(place: Place) -> str:
    await place.run("mkfifo ff; mkdir dd; ln -s /dev/zero zz; ln -s /dev/stdin in")
    await place.run("python3 -c 'import socket; socket.socket(1).bind(\"sk\")'")
    paths = [f"{HERE}/{name}" for name in ("ff", "sk", "dd", "zz", "in")]
    lines = []
    for path in (*paths, "/dev/zero", "/proc/kmsg"):
        try:
            async with asyncio.timeout(5):
                lines.append(await reading(place.sandbox, path))
        except TimeoutError:
            lines.append(f"HUNG {path}")
    return "\n".join(lines)


async def _links(place: Place) -> str:
    await place.run(_LINKS)
    outside = str(place.outside)
    inner = [f"{HERE}/{name}" for name in ("l1", f"ld{outside}/secret.txt", "l2", "l3", "l4")]
    lines = [await reading(place.sandbox, *inner, "../../etc/passwd", f"{outside}/secret.txt")]
    for path in (f"{HERE}/ld{outside}/new", f"{HERE}/l1"):
        try:
            await place.sandbox.write(path, b"x")
            lines.append(f"WRITTEN {path}")
        except ToolError as error:
            lines.append(f"refused to write: {error}")
    return "\n".join(lines)


async def _links_and_the_host(place: Place) -> str:
    """Let every call of the interface meet the links, and look for the tree from the host."""
    async with place.another() as sandbox:
        await sandbox.run(Command(shell=f"mkdir {HERE}; echo x >host-cannot-see-this"))
        await sandbox.run(Command(shell=_LINKS, cwd=HERE, env=place.variables))
        listing = await sandbox.list()
        hits = await sandbox.search(SECRET.replace("-", "."))
        patch = await sandbox.diff()
        # Below the state folder lie images, histories and trees: none may hold this run's files.
        found = await asyncio.to_thread(_named, place.state, "host-cannot-see-this")
    shown = patch.diff.decode(errors="backslashreplace")
    return f"{listing.paths}\nhits {len(hits)}\nfound {len(found)}\n{shown}"


def _named(root: Path, name: str) -> list[str]:
    """Return the folders that hold an entry of this name; what goes meanwhile is passed over."""
    return [folder for folder, within, files in os.walk(root) if name in (*within, *files)]


async def _swapped_link(place: Place) -> str:
    swap = Command(shell=_SWAP, cwd=HERE, env=place.variables, background=True)
    await place.sandbox.run(swap)
    seen: set[str] = set()
    reads = 0
    deadline = time.monotonic() + 0.7
    while time.monotonic() < deadline:
        reads += 1
        seen.add(await reading(place.sandbox, f"{HERE}/rx/secret.txt"))
    await place.sandbox.kill_all()
    leaks = sum(SECRET in text for text in seen)
    inside = any("inside" in text for text in seen)
    return f"reads {reads >= 100}, inside {inside}, leaks {leaks}"


async def _deep_tree(place: Place) -> str:
    async with place.another() as sandbox:
        result = await sandbox.run(Command(("python3", "-IS", "-c", _DEEP), timeout=30))
        patch = await sandbox.diff()
        begin = time.monotonic()
    took = time.monotonic() - begin
    return f"{outcome(result)}\nfiles {len(patch.files)}\nclosed in {took:.1f} s"


async def _odd_names(place: Place) -> str:
    names = "$'a\\nb' $'\\xff\\xfe' -rf $(printf 'n%.0s' $(seq 255))"
    await place.run(f"touch -- {names}")
    listed = (await place.sandbox.list(f"{HERE}/*")).paths
    found = sum(f"{HERE}/{name}" in listed for name in _NAMES)
    return f"listed {len(listed)}, found {found}\n{await reading(place.sandbox, *listed)}"


async def _odd_paths(place: Place) -> str:
    paths = ("a\0b", "", ".", "a" * 5000, "\udcff\udcfe", "\ud800", "a/" * 3000, f"{HERE}/a\n")
    return await reading(place.sandbox, *paths)


ROWS = (
    Row(
        17,
        "writing the system",
        shell(
            "for d in /usr/bin /usr/lib /etc /lib / /run/turnout /base /base.git /dev; do "
            "touch $d/x && echo MADE $d; done; echo x >>/etc/passwd && echo MADE"
        ),
        must=(
            r"'/usr/bin/x'.*(Read-only|denied)",
            r"'/etc/x'.*(Read-only|denied)",
            r"'//x'.*(Read-only|denied)",
        ),
        never=("MADE",),
        without="touch: cannot touch '/usr/bin/x': Read-only file system\nMADE /etc",
    ),
    Row(
        18,
        "mounting",
        shell(
            "mount -o remount,rw / && echo MOUNTED; mount -o remount,rw /usr && echo MOUNTED; "
            "mount --bind /repo /usr && echo MOUNTED; mount -t tmpfs t /mnt && echo MOUNTED; "
            "mount -t proc p /tmp && echo MOUNTED; umount -l /proc && echo MOUNTED; echo tried"
        ),
        must=("^mount: .*(permission denied|not permitted|superuser)", "^tried$"),
        never=("MOUNTED",),
        without="mount: /usr: permission denied.\nMOUNTED\ntried",
    ),
    Row(
        19,
        "gaining another uid",
        shell(
            "cp /bin/bash sb && chmod 6755 sb && ./sb -p -c id; su -c id </dev/null; "
            "python3 -c 'import os; os.setuid(0)' || echo refused; "
            "grep NoNewPrivs /proc/self/status"
        ),
        must=(r"^NoNewPrivs:\t1$", "^uid=[1-9]", "^refused$"),
        never=(r"\b(e?uid|e?gid)=0\b",),
        without="uid=1000(agent) euid=0(root)\nrefused\nNoNewPrivs:\t0",
    ),
    Row(
        20,
        "capabilities",
        shell("grep ^Cap /proc/self/status"),
        must=tuple(rf"^Cap{kind}:\t0{{16}}$" for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")),
        never=(r"^Cap\w+:\t0*[1-9a-f]",),
        without="CapInh:\t0000000000000000\nCapBnd:\t00000000800405fb",
    ),
    Row(
        21,
        "device nodes in the tree",
        shell(
            "mknod d1 b 254 0 && echo MADE; mknod d2 c 1 1 && echo MADE; "
            "mknod /tmp/d3 c 1 1 && echo MADE; head -c4 d1 d2 /tmp/d3; echo tried"
        ),
        must=("mknod: d1: Operation not permitted", "mknod: d2: Operation not", "^tried$"),
        never=("MADE",),
        without="MADE\nMADE\ntried",
    ),
    Row(
        22,
        "reading what is no regular file",
        _special_files,
        must=(
            *(f"^refused '{HERE}/{name}'" for name in ("ff", "sk", "dd", "zz")),
            *("^refused '/dev/zero'", "^refused '/proc/kmsg'"),
        ),
        never=("READ", "HUNG"),
        without="HUNG here/ff",
    ),
    Row(
        23,
        "reading and writing through links",
        _links,
        must=(
            *(f"^refused '{HERE}/{name}" for name in ("l1'", "ld/", "l2'", "l3'", "l4'")),
            r"^refused '\.\./\.\./etc/passwd'",
            "^refused to write.*\n.*refused to write",
        ),
        never=("READ", "WRITTEN", SECRET),
        without=f"READ 'here/l1': b'{SECRET}'",
    ),
    Row(
        24,
        "the same links met by the service itself",
        _links_and_the_host,
        must=("^found 0$", "^hits 0$", "here/l1", "^new file mode 120000", r"^\+/.*/secret.txt$"),
        never=(SECRET,),
        without=f"here/l1\nhits 1\nfound 1\nnew file mode 100644\n+{SECRET}",
    ),
    Row(
        25,
        "a link that is swapped while it is read",
        _swapped_link,
        must=("^reads True, inside True, leaks 0$",),
        never=(),
        without="reads True, inside True, leaks 3",
    ),
    Row(
        26,
        "hard links to files outside the tree",
        shell(
            "for f in /usr/bin/env /etc/passwd /run/turnout/* /base/a.txt; do "
            "ln $f hl && echo LINKED; done; echo tried"
        ),
        must=("^ln: .*hl.*(cross-device|not permitted|denied)", "^tried$"),
        never=("LINKED",),
        without="ln: hl: Invalid cross-device link\nLINKED\ntried",
    ),
    Row(
        27,
        "a sparse file of a terabyte",
        shell("truncate -s 1T sp && echo MADE; stat -c %s sp; rm -f sp; echo tried"),
        must=("File (size limit exceeded|too large)", "^tried$"),
        never=("MADE", "1099511627776"),
        without="MADE\n1099511627776\ntried",
    ),
    Row(
        28,
        "filling the disk in the tree",
        shell(_FILL),
        must=("No space left", "^kept$"),
        never=("^209715200 bytes", "FILLED"),
        without="209715200 bytes (210 MB) copied\nFILLED\nkept",
    ),
    Row(
        29,
        "filling the disk in /tmp",
        shell(f"cd /tmp; {_FILL}"),
        must=("No space left", "^kept$"),
        never=("^209715200 bytes", "FILLED"),
        without="209715200 bytes (210 MB) copied\nFILLED\nkept",
    ),
    Row(
        30,
        "files without number",
        python(_INODES),
        must=(r"^stopped at \d{1,4} ",),
        never=("MADE",),
        without="MADE 30000",
    ),
    Row(
        31,
        "a tree of 3000 nested folders at the end",
        _deep_tree,
        must=("^made$", "^files 0$", r"^closed in [0-4]\.\d s$"),
        never=("RecursionError",),
        without="RecursionError: maximum recursion depth exceeded",
    ),
    Row(
        32,
        "odd names",
        _odd_names,
        must=("^listed 4, found 4$", r"^READ 'here/a\\nb'", r"^READ 'here/\\udcff\\udcfe'"),
        never=("^refused",),
        without="listed 5, found 2\nrefused 'here/a'",
    ),
    Row(
        33,
        "odd paths",
        _odd_paths,
        must=("(^refused .*\n?){8}",),
        never=("READ",),
        without="READ ''",
    ),
)
