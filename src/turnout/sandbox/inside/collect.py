"""Runs inside a collector sandbox: compare a tree that a run has left with its base commit.

    python3 -ISE -c SOURCE GIT_DIR TREE SCRATCH COMMIT  < tree.tar

`GIT_DIR` is bare, read-only and was never seen by the run; `TREE` is an empty folder, `SCRATCH`
one to be made. The tree's own git directories, attributes, filters and hooks count for nothing.
Prints one line of JSON, see `read_collected` of `collector`, then the patch.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

__all__ = [
    "Base",
    "Found",
    "Git",
    "base_of",
    "changes",
    "clear",
    "left_out",
    "main",
    "report",
    "shown",
    "unwanted",
    "walk",
    "write",
]

LARGE = 32 << 20
MOST_EXCLUDED = 500
ATTRIBUTES = b"* !text !eol !crlf !filter !ident !working-tree-encoding !diff !merge !whitespace\n"
JUNK = b"""\
__pycache__
*.pyc
*.pyo
.pytest_cache
.mypy_cache
.ruff_cache
.hypothesis
.tox
.nox
.coverage
.coverage.*
node_modules
.venv
venv/
*.egg-info
.eggs
.DS_Store
"""
SAFE = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.attributesFile": "/dev/null",
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.fileMode": "true",
    "core.symlinks": "true",
    "core.ignoreCase": "false",
    "core.bigFileThreshold": "64m",
    "advice.addEmbeddedRepo": "false",
}
DIFF = ["diff", "--cached", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-color"]
PATCH = ["--binary", "--full-index", "--src-prefix=a/", "--dst-prefix=b/"]


class Git:
    """A git directory and index that the run never saw, over the tree it has left."""

    def __init__(self, base: str, tree: str, scratch: str, commit: str) -> None:
        self.tree = tree
        self.environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": "/nonexistent",
            "LC_ALL": "C",
            "GIT_DIR": scratch + "/git",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": "none",
            "GIT_NO_LAZY_FETCH": "1",
        }
        kind = "sha256" if len(commit) == len("0" * 64) else "sha1"
        self.run("init", "--quiet", "--bare", "--template=", "--object-format=" + kind)
        os.makedirs(scratch + "/git/info", exist_ok=True)
        os.makedirs(scratch + "/git/objects/info", exist_ok=True)
        write(scratch + "/git/objects/info/alternates", os.fsencode(base) + b"/objects\n")
        write(scratch + "/git/info/attributes", ATTRIBUTES)
        write(scratch + "/git/info/exclude", JUNK)
        self.environment["GIT_WORK_TREE"] = tree
        self.run("read-tree", commit)

    def run(self, *arguments: str, accept: tuple[int, ...] = (0,)) -> bytes:
        """Run git in the tree and return what it printed."""
        options = [part for name, value in SAFE.items() for part in ("-c", f"{name}={value}")]
        done = subprocess.run(
            ["git", *options, *arguments],
            cwd=self.tree,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            check=False,
        )
        if done.returncode not in accept:
            raise subprocess.CalledProcessError(done.returncode, "git " + arguments[0])
        return done.stdout

    def paths(self, *arguments: str) -> list[bytes]:
        """Run git and split what it printed at its NUL bytes."""
        return [path for path in self.run(*arguments).split(b"\0") if path]


class Base(NamedTuple):
    """What the base commit holds."""

    files: set[bytes]
    folders: set[bytes]
    submodules: set[bytes]


def base_of(git: Git) -> Base:
    """Read the index, which is still that of the base commit."""
    files: set[bytes] = set()
    folders: set[bytes] = set()
    submodules: set[bytes] = set()
    for line in git.paths("ls-files", "-z", "--stage"):
        facts, _, path = line.partition(b"\t")
        (submodules if facts.startswith(b"160000") else files).add(path)
        while b"/" in path:
            path = path.rpartition(b"/")[0]
            if path in folders:
                break
            folders.add(path)
    return Base(files, folders, submodules)


class Found(NamedTuple):
    """One entry of the tree."""

    path: bytes
    """Relative to the tree."""
    mode: int
    size: int


def walk(tree: bytes) -> Iterator[Found]:
    """Yield everything in the tree, folders first, having made every folder ours to change."""
    waiting = [b""]
    while waiting:
        folder = waiting.pop()
        os.chmod(os.path.join(tree, folder), 0o700)
        for name in sorted(os.listdir(os.path.join(tree, folder))):
            path = os.path.join(folder, name)
            facts = os.lstat(os.path.join(tree, path))
            if stat.S_ISDIR(facts.st_mode):
                waiting.append(path)
            yield Found(path, facts.st_mode, facts.st_size)


def unwanted(base: Base, tree: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield what must not be seen by git, each with the name under which people are told."""
    for found in walk(tree):
        folder, _, name = found.path.rpartition(b"/")
        owner = next((sub for sub in base.submodules if found.path.startswith(sub + b"/")), None)
        if owner is not None:
            yield found.path, owner + b"/"
        elif name == b".git":
            if folder in base.folders or not folder:
                yield found.path, found.path
            else:
                yield folder, folder + b"/"
        elif name == b"pyvenv.cfg" and folder and folder not in base.folders:
            yield folder, folder + b"/"
        elif found.size > LARGE and stat.S_ISREG(found.mode) and found.path not in base.files:
            yield found.path, found.path


def clear(git: Git) -> set[bytes]:
    """Take what git must not see out of the tree and return the names of it."""
    tree = os.fsencode(git.tree)
    doomed = list(unwanted(base_of(git), tree))
    for start in range(0, len(doomed), 500):
        paths = [os.path.join(tree, path) for path, _ in doomed[start : start + 500]]
        subprocess.run([b"rm", b"-rf", b"--", *paths], check=True)
    return {name for _, name in doomed}


def left_out(git: Git) -> set[bytes]:
    """Return new paths that are ignored or that git cannot hold."""
    listing = ["ls-files", "-z", "--others", "--exclude-standard"]
    ignored = git.paths(*listing, "--ignored", "--directory", "--no-empty-directory")
    return {*ignored, *git.paths(*listing)}


def changes(git: Git, commit: str) -> list[dict[str, object]]:
    """Return one object for each changed path."""
    counts: dict[bytes, list[str]] = {}
    for record in git.paths(*DIFF, "--numstat", "-z", commit, "--"):
        added, deleted, path = record.split(b"\t", 2)
        counts[path] = [added.decode(), deleted.decode()]
    told = iter(git.paths(*DIFF, "--name-status", "-z", commit, "--"))
    found: list[dict[str, object]] = []
    for status in told:
        path = next(told)
        found.append(
            {
                "path": shown(path),
                "status": status.decode()[:1],
                "lines": counts.get(path, ["-", "-"]),
            }
        )
    return found


def shown(path: bytes) -> str:
    """Return a path as text that any encoding takes."""
    return path.decode(errors="backslashreplace")


def write(path: str, content: bytes) -> None:
    """Write a small file."""
    with open(path, "wb") as file:
        file.write(content)


def report(git: Git, commit: str, excluded: Iterable[bytes]) -> None:
    """Print the facts and the patch."""
    unrecorded = git.paths("diff-files", "-z", "--name-only", "--ignore-submodules=all")
    told = sorted(excluded)
    facts = {
        "changes": changes(git, commit),
        "excluded": [shown(path) for path in told[:MOST_EXCLUDED]],
        "excluded_total": len(told),
        "unrecorded": [shown(path) for path in unrecorded[:MOST_EXCLUDED]],
    }
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()
    sys.stdout.buffer.write(git.run(*DIFF, *PATCH, commit, "--"))


def main(base: str, tree: str, scratch: str, commit: str) -> None:
    """Unpack, clear, record, compare."""
    os.umask(0o022)
    os.makedirs(scratch, exist_ok=True)
    unpack = ["tar", "--extract", "--file=-", "--directory=" + tree, "--no-same-owner"]
    unpack += ["--no-same-permissions", "--delay-directory-restore", "--warning=no-timestamp"]
    subprocess.run(unpack, check=True)
    git = Git(base, tree, scratch, commit)
    excluded = clear(git)
    # Compares contents without storing them: `add` would write every object that it cannot touch
    # in the read-only history.
    git.run("update-index", "-q", "--really-refresh", accept=(0, 1))
    git.run("add", "--all", "--ignore-errors", "--", ".", accept=(0, 1))
    report(git, commit, excluded | left_out(git))


if __name__ == "__main__":
    main(*sys.argv[1:5])
