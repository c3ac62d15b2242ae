"""Runs inside a set-up sandbox: lay out a commit as a work tree.

    python3 -ISE -c SOURCE GIT_DIR TREE COMMIT

`GIT_DIR` is bare and read-only, `TREE` an empty folder. The tree's files are byte for byte those
of the commit: no filter, no line-end conversion, no large-file download. Prints one JSON object,
see `base_layer`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import IO, NamedTuple

__all__ = [
    "Entry",
    "TooLargeError",
    "entries",
    "facts",
    "git",
    "hashed",
    "lay_out",
    "main",
    "prepares",
    "records",
    "settle_times",
    "shown",
    "text_of",
    "texts_of",
    "write",
]

MOST_FILES = 400_000
MOST_BYTES = 4 << 30
MOST_TEXT = 256 << 10
MOST_LOCK = 4 << 20
MOST_TEXTS = 40
MOST_TOGETHER = 8 << 20
MOST_NODES = 2_000
ATTRIBUTES = "* !text !eol !crlf !filter !ident !working-tree-encoding\n"
SAFE = {
    "safe.directory": "*",
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.attributesFile": "/dev/null",
    "core.logAllRefUpdates": "false",
    "advice.detachedHead": "false",
}
SETTINGS = {
    "user.name": "Turnout",
    "user.email": "turnout@localhost",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "core.autocrlf": "false",
    "core.checkStat": "minimal",
    "core.trustctime": "false",
}


ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/nonexistent",
    "LC_ALL": "C.UTF-8",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
}
DECLARING = re.compile(
    r"pyproject\.toml|setup\.py|setup\.cfg|Pipfile|Pipfile\.lock|uv\.lock|poetry\.lock|package\.json"
    r"|pylock\.(?:[^./]+\.)?toml|requirements[^/]*\.txt|(?:test|tests|dev)[-_]requirements\.txt"
    r"|requirements/[^/]*\.txt|(?:test|tests)/requirements[^/]*\.txt"
)
"""Files that say which packages are needed, or how the project is built."""
NODE = re.compile(r"(?:(?!node_modules/)[^/]+/)*(?:package|package-lock|npm-shrinkwrap)\.json")
"""Files that npm looks at."""
NATIVE = re.compile(
    r".*\.(?:c|cc|cpp|cxx|cu|h|hh|hpp|hxx|pyx|pxd|pxi|f|f90|f95|rs|go|i)"
    r"|(?:.*/)?(?:CMakeLists\.txt|meson\.build|Cargo\.toml|Cargo\.lock)",
    re.DOTALL,
)
PREPARING = re.compile(
    r"(?:.*/)?(?:[^/]*[-.]lock(?:[.b][^/]*)?|npm-shrinkwrap\.json|package\.json|go\.(?:mod|sum)"
    r"|pyproject\.toml|setup\.(?:py|cfg)|[^/]*requirements[^/]*\.txt|environment\.ya?ml|noxfile\.py"
    r"|Cargo\.toml|Gemfile|composer\.json|pom\.xml|[^/]*\.gradle(?:\.kts)?|[^/]*\.(?:sh|mk)"
    r"|(?:GNU)?[Mm]akefile|[Jj]ustfile|Taskfile\.ya?ml)",
    re.DOTALL,
)
"""Files that a command goes by which sets a repository up; programs are others."""


class TooLargeError(Exception):
    """The tree has more files or bytes than a workspace may."""


def git(*arguments: str, cwd: str = "/") -> bytes:
    """Run git, knowing no configuration but the repository's own, and return what it printed."""
    options = [part for name, value in SAFE.items() for part in ("-c", f"{name}={value}")]
    done = subprocess.run(
        ["git", *options, *arguments],
        cwd=cwd,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=True,
    )
    return done.stdout


class Entry(NamedTuple):
    """One line of a tree."""

    mode: str
    name: str
    path: str
    """Bytes that are no UTF-8 appear as surrogates."""


def entries(git_dir: str, commit: str) -> list[Entry]:
    """Return everything in the commit's tree; `TooLargeError` where that is too much."""
    listing = ["ls-tree", "-r", "-z", "--long", "--full-tree", commit]
    process = subprocess.Popen(
        ["git", "-c", "safe.directory=*", "--git-dir", git_dir, *listing],
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    found: list[Entry] = []
    total = 0
    for line in records(process.stdout):
        facts, _, path = line.partition(b"\t")
        mode, _, name, size = facts.decode().split()
        total += int(size) if size != "-" else 0
        found.append(Entry(mode, name, os.fsdecode(path)))
        if len(found) > MOST_FILES or total > MOST_BYTES:
            process.kill()
            raise TooLargeError
    if process.wait():
        raise subprocess.CalledProcessError(process.returncode, "git ls-tree")
    return found


def records(stream: IO[bytes] | None) -> Iterator[bytes]:
    """Split a stream at its NUL bytes."""
    rest = b""
    while stream is not None:
        data = stream.read(1 << 20)
        if not data:
            return
        *whole, rest = (rest + data).split(b"\0")
        yield from whole


def lay_out(git_dir: str, tree: str, commit: str) -> None:
    """Make the work tree and its `.git`, whose objects stay in `git_dir`."""
    kind = "sha256" if len(commit) == len("0" * 64) else "sha1"
    options = ["--quiet", "--template=", "--initial-branch=main", "--object-format=" + kind]
    git("init", *options, tree)
    inner = os.path.join(tree, ".git")
    os.makedirs(os.path.join(inner, "info"), exist_ok=True)
    os.makedirs(os.path.join(inner, "objects", "info"), exist_ok=True)
    write(os.path.join(inner, "objects", "info", "alternates"), git_dir + "/objects\n")
    write(os.path.join(inner, "info", "attributes"), ATTRIBUTES)
    if os.path.exists(os.path.join(git_dir, "shallow")):
        shutil.copyfile(os.path.join(git_dir, "shallow"), os.path.join(inner, "shallow"))
    for name, value in SETTINGS.items():
        git("config", name, value, cwd=tree)
    git("update-ref", "refs/heads/main", commit, cwd=tree)
    git("read-tree", "--reset", "-u", "HEAD", cwd=tree)


def settle_times(tree: str, commit: str, found: list[Entry]) -> None:
    """Give every file the time of the commit, so that the index is right without a look inside."""
    told = int(git("log", "-1", "--format=%ct", commit, cwd=tree).decode().strip() or "1")
    moment = max(1, min(told, int(time.time()) - 60))
    for entry in found:
        path = os.path.join(tree, entry.path)
        if os.path.lexists(path):
            os.utime(path, (moment, moment), follow_symlinks=False)
    git("update-index", "-q", "--refresh", cwd=tree)


def text_of(git_dir: str, entry: Entry) -> str:
    """Return the start of a file as the commit holds it."""
    content = git("--git-dir", git_dir, "cat-file", "blob", entry.name)
    most = MOST_LOCK if "lock" in entry.path.rpartition("/")[2] else MOST_TEXT
    return content[:most].decode(errors="replace")


def texts_of(git_dir: str, chosen: list[Entry]) -> dict[str, str]:
    """Return the texts of files by path, as many as fit."""
    found: dict[str, str] = {}
    left = MOST_TOGETHER
    for entry in chosen[:MOST_TEXTS]:
        text = text_of(git_dir, entry)
        left -= len(text)
        if left >= 0:
            found[entry.path] = text
    return found


def facts(git_dir: str, found: list[Entry]) -> dict[str, object]:
    """Return what the host wants to know of the commit."""
    files = [entry for entry in found if entry.mode in ("100644", "100755")]
    links = [shown(entry.path) for entry in found if entry.mode == "160000"]
    declaring = [entry for entry in files if DECLARING.fullmatch(entry.path)]
    attributes = [entry for entry in files if entry.path.rsplit("/", 1)[-1] == ".gitattributes"]
    large = any("filter=lfs" in text_of(git_dir, entry) for entry in attributes[:MOST_TEXTS])
    nodes = [entry for entry in files if NODE.fullmatch(entry.path)][:MOST_NODES]
    return {
        "files": len(found),
        "submodules": links[:MOST_TEXTS],
        "large_files": large,
        "texts": texts_of(git_dir, declaring),
        "nodes": {entry.path: entry.name for entry in nodes},
        "native": hashed([entry for entry in files if NATIVE.fullmatch(entry.path)]),
        "preparing": hashed([entry for entry in files if prepares(entry)]),
    }


def prepares(entry: Entry) -> bool:
    """Say whether a command that sets the repository up may go by a file."""
    return entry.mode == "100755" or PREPARING.fullmatch(entry.path) is not None


def hashed(chosen: list[Entry]) -> str:
    """Return a hash of paths and contents; nothing where there are none."""
    told = b"".join(os.fsencode(f"{entry.name} {entry.path}\0") for entry in chosen)
    return hashlib.sha256(told).hexdigest() if chosen else ""


def shown(path: str) -> str:
    """Return a path as text that any encoding takes."""
    return os.fsencode(path).decode(errors="backslashreplace")


def write(path: str, text: str) -> None:
    """Write a small file."""
    with open(path, "w") as file:
        file.write(text)


def main(git_dir: str, tree: str, commit: str) -> None:
    """Lay the commit out and print what is known of it."""
    try:
        found = entries(git_dir, commit)
    except TooLargeError:
        sys.stdout.write(json.dumps({"too_large": True}))
        return
    try:
        lay_out(git_dir, tree, commit)
        settle_times(tree, commit, found)
        told = facts(git_dir, found)
    except subprocess.CalledProcessError:
        # Git has said why.
        sys.exit(1)
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:4])
