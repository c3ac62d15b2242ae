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

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

__all__ = [
    "Entry",
    "Made",
    "changed",
    "everything",
    "looks",
    "made",
    "main",
    "recalled",
    "remember",
    "rule",
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


class Made(NamedTuple):
    """What was found after the command."""

    paths: list[bytes]
    """New, or not as they were."""
    tops: list[bytes]
    """Uppermost folders, with a slash at the end, and files that have nothing of the commit."""
    complete: bool


def everything(root: bytes) -> Iterator[Entry]:
    """Yield what is in the workspace, folders before what they hold."""
    waiting = [b""]
    while waiting:
        folder = waiting.pop()
        for name in sorted(os.listdir(os.path.join(root, folder))):
            if name in PASSED_OVER:
                continue
            path = os.path.join(folder, name)
            entry = Entry(path, os.lstat(os.path.join(root, path)))
            if entry.is_folder:
                waiting.append(path)
            if entry.is_folder or stat.S_IFMT(entry.facts.st_mode) in (stat.S_IFREG, stat.S_IFLNK):
                yield entry


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


def tracked(git_dir: str, commit: str) -> set[bytes]:
    """Return the paths of the commit."""
    listing = ["git", "-c", "safe.directory=*", "--git-dir", git_dir]
    listing += ["ls-tree", "-r", "-z", "--name-only", "--full-tree", commit]
    done = subprocess.run(listing, env=ENVIRONMENT, stdout=subprocess.PIPE, check=True)
    return set(filter(None, done.stdout.split(b"\0")))


def made(root: bytes, known: set[bytes], before: dict[bytes, bytes]) -> Made:
    """Find what is no file of the commit, and what of that is new or not as it was."""
    folders = set()
    for path in known:
        while path := path.rpartition(b"/")[0]:
            folders.add(path)
    paths: list[bytes] = []
    tops: list[bytes] = []
    size = 0
    for entry in everything(root):
        if entry.path in known or (entry.is_folder and entry.path in folders):
            continue
        above = entry.path.rpartition(b"/")[0]
        if not above or above in folders:
            tops.append(entry.path + (b"/" if entry.is_folder else b""))
        if before.get(entry.path) != looks(entry):
            paths.append(entry.path)
            size += entry.facts.st_size
        if len(paths) > MOST_PATHS or len(tops) > MOST_RULES or size > MOST_BYTES:
            return Made([], [], complete=False)
    return Made(paths, tops, complete=True)


def changed(root: bytes, known: set[bytes], before: dict[bytes, bytes]) -> Iterator[bytes]:
    """Yield the files of the commit that are gone or not as they were."""
    for path in sorted(known.intersection(before)):
        try:
            entry = Entry(path, os.lstat(os.path.join(root, path)))
        except OSError:
            yield path
        else:
            if looks(entry) != before[path]:
                yield path


def rule(top: bytes) -> str:
    """Return the rule by which git ignores a path; none for one that no line can hold."""
    if b"\n" in top or b"\r" in top:
        return ""
    return "/" + SPECIAL.sub(rb"\\\g<0>", top).decode(errors="replace") + "\n"


def tell(root: bytes, git_dir: str, commit: str, memory: str, listing: str) -> None:
    """Write the listing and print the rest."""
    known, before = tracked(git_dir, commit), recalled(memory)
    found = made(root, known, before)
    with open(listing, "wb") as file:
        file.write(b"".join(b"./" + path + b"\0" for path in found.paths))
    altered = [path.decode(errors="backslashreplace") for path in changed(root, known, before)]
    facts = {
        "paths": len(found.paths),
        "rules": "".join(map(rule, found.tops)),
        "changed": altered[:MOST_CHANGED],
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
