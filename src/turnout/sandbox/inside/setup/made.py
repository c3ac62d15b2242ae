"""Runs inside a set-up sandbox: tell what a command has made in the workspace.

    python3 -ISE -c SOURCE remember REPO MEMORY
    python3 -ISE -c SOURCE tell REPO GIT_DIR COMMIT MEMORY LISTING

The first call, before the command, writes down how everything looks. The second, after it, writes
to `LISTING` what is new or looks otherwise and is no file of the commit in `GIT_DIR`, a path a
record, for tar to read. It prints one JSON object: `rules` by which git ignores whatever is no file
of the commit, how many `paths` are listed, which files of the commit were `changed`, and whether
`all` of it could be told.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Collection, Iterator
from typing import NamedTuple

__all__ = [
    "Entry",
    "Made",
    "changed",
    "everything",
    "identity",
    "looks",
    "made",
    "main",
    "may_read",
    "recalled",
    "remember",
    "rule",
    "shown",
    "tell",
    "tracked",
]

MOST_PATHS = 300_000
MOST_BYTES = 4 << 30
MOST_RULES = 5_000
MOST_CHANGED = 50
PASSED_OVER = (b".git", b"__pycache__")
SPECIAL = re.compile(rb"[\\*?\[\]# !]")
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/nonexistent",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
}


class Entry(NamedTuple):
    """A folder, a file or a link of the workspace."""

    path: bytes
    """Relative to the workspace."""
    facts: os.stat_result

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder itself, and no link to one."""
        return stat.S_ISDIR(self.facts.st_mode)

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file or a link."""
        return stat.S_IFMT(self.facts.st_mode) in (stat.S_IFREG, stat.S_IFLNK)


class Made(NamedTuple):
    """What was found after the command."""

    paths: list[bytes]
    """New, or not as they were."""
    tops: list[bytes]
    """Uppermost folders, with a slash at the end, and files that have nothing of the commit."""
    complete: bool
    unreadable: list[bytes]
    """Files that are new, and folders, that their owner may not read."""


def everything(root: bytes) -> Iterator[Entry]:
    """Yield what is in the workspace, folders before what they hold, as far as it can be read."""
    waiting = [b""]
    while waiting:
        folder = waiting.pop()
        if not may_read(root, folder, is_folder=True):
            continue
        for name in sorted(os.listdir(os.path.join(root, folder))):
            if name in PASSED_OVER:
                continue
            path = os.path.join(folder, name)
            entry = Entry(path, os.lstat(os.path.join(root, path)))
            if entry.is_folder:
                waiting.append(path)
            if entry.is_folder or entry.is_file:
                yield entry


def may_read(root: bytes, path: bytes, *, is_folder: bool) -> bool:
    """Say whether a regular file, or a folder with what it holds, can be read."""
    return os.access(os.path.join(root, path), os.R_OK | (os.X_OK if is_folder else 0))


def looks(entry: Entry) -> bytes:
    """Return what changes with an entry; the times of a folder change with what it holds."""
    facts = entry.facts
    if entry.is_folder:
        return b"%o" % facts.st_mode
    return b"%o %d %d" % (facts.st_mode, facts.st_size, facts.st_mtime_ns)


def remember(root: bytes, memory: str) -> None:
    """Write down how everything looks."""
    os.makedirs(os.path.dirname(memory), exist_ok=True)
    with open(memory, "wb") as file:
        file.writelines(looks(entry) + b"\t" + entry.path + b"\0" for entry in everything(root))


def recalled(memory: str) -> dict[bytes, bytes]:
    """Return how everything looked, by path."""
    with open(memory, "rb") as file:
        records = [record.partition(b"\t") for record in file.read().split(b"\0") if record]
    return {path: looked for looked, _, path in records}


def tracked(git_dir: str, commit: str) -> dict[bytes, bytes]:
    """Return the paths of the commit, each with its mode and the name of its content."""
    listing = ["git", "-c", "safe.directory=*", "--git-dir", git_dir]
    listing += ["ls-tree", "-r", "-z", "--full-tree", commit]
    done = subprocess.run(listing, env=ENVIRONMENT, stdout=subprocess.PIPE, check=True)
    records = [record.partition(b"\t") for record in done.stdout.split(b"\0") if record]
    return {path: facts for facts, _, path in records}


def identity(root: bytes, entry: Entry, length: int) -> bytes:
    """Return mode, kind and name of an entry's content as git tells them; names are so long."""
    path = os.path.join(root, entry.path)
    if stat.S_ISLNK(entry.facts.st_mode):
        mode, content = b"120000", os.readlink(path)
    else:
        mode = b"100755" if entry.facts.st_mode & stat.S_IXUSR else b"100644"
        with open(path, "rb") as file:
            content = file.read()
    digest = hashlib.sha1 if length == len("0" * 40) else hashlib.sha256
    name = digest(b"blob %d\0" % len(content) + content).hexdigest()
    return mode + b" blob " + name.encode()


def made(root: bytes, known: Collection[bytes], before: dict[bytes, bytes]) -> Made:
    """Find what is no file of the commit, and what of that is new or not as it was."""
    folders = set()
    for path in known:
        while path := path.rpartition(b"/")[0]:
            folders.add(path)
    paths: list[bytes] = []
    tops: list[bytes] = []
    unreadable = [] if may_read(root, b"", is_folder=True) else [b"."]
    size = 0
    for entry in everything(root):
        is_new = entry.path not in known and not stat.S_ISLNK(entry.facts.st_mode)
        if is_new and not may_read(root, entry.path, is_folder=entry.is_folder):
            unreadable.append(entry.path)
        if entry.path in known or (entry.is_folder and entry.path in folders):
            continue
        above = entry.path.rpartition(b"/")[0]
        if not above or above in folders:
            tops.append(entry.path + (b"/" if entry.is_folder else b""))
        if before.get(entry.path) != looks(entry):
            paths.append(entry.path)
            size += entry.facts.st_size
        if len(paths) > MOST_PATHS or len(tops) > MOST_RULES or size > MOST_BYTES:
            return Made([], [], complete=False, unreadable=unreadable)
    return Made(paths, tops, complete=True, unreadable=unreadable)


def changed(root: bytes, known: dict[bytes, bytes], before: dict[bytes, bytes]) -> Iterator[bytes]:
    """Yield the files of the commit that are gone, or are no longer what it holds."""
    for path in sorted(before.keys() & known.keys()):
        try:
            entry = Entry(path, os.lstat(os.path.join(root, path)))
            is_same = looks(entry) == before[path] or (
                entry.is_file and identity(root, entry, len(known[path].split()[-1])) == known[path]
            )
        except OSError:
            is_same = False
        if not is_same:
            yield path


def rule(top: bytes) -> str:
    """Return the rule by which git ignores a path; none for one that no line can hold."""
    if b"\n" in top or b"\r" in top:
        return ""
    return "/" + SPECIAL.sub(rb"\\\g<0>", top).decode(errors="replace") + "\n"


def shown(paths: list[bytes]) -> list[str]:
    """Return paths as texts that any encoding takes."""
    return [path.decode(errors="backslashreplace") for path in paths]


def tell(root: bytes, git_dir: str, commit: str, memory: str, listing: str) -> None:
    """Write the listing and print the rest."""
    known, before = tracked(git_dir, commit), recalled(memory)
    found = made(root, known, before)
    with open(listing, "wb") as file:
        file.write(b"".join(b"./" + path + b"\0" for path in found.paths))
    altered = list(changed(root, known, before))
    facts = {
        "paths": len(found.paths),
        "rules": "".join(map(rule, found.tops)),
        "changed": shown(altered[:MOST_CHANGED]),
        "unreadable": shown(found.unreadable[:MOST_CHANGED]),
        "all": found.complete,
    }
    sys.stdout.write(json.dumps(facts))


def main(what: str, repo: str, *arguments: str) -> None:
    """Do what the first argument says."""
    if what == "remember":
        remember(os.fsencode(repo), *arguments)
    else:
        tell(os.fsencode(repo), *arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
