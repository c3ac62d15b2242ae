"""Runs inside a collector sandbox: compare a tree that a run has left with its base commit.

    python3 -ISE -c SOURCE GIT_DIR SCRATCH COMMIT MORE tree                   < tree.tar
    python3 -ISE -c SOURCE GIT_DIR SCRATCH COMMIT MORE changes BASE SNAPSHOT  < changes

`GIT_DIR` is bare, read-only and was never seen by the run, `SCRATCH` a folder to be made. What the
folders below `MORE` hold as well was made before the run and is no change, whatever it holds now.
Either the whole tree is looked at, or what has changed alone: `BASE` is the tree as it was when the
run began then, the input what the program `SNAPSHOT` packs. The tree's own git directories,
attributes, filters and hooks count for nothing, but that its index names a file: one that the run
has staged or committed is a change, whatever ignores it.
Prints one line of JSON, see `read_collected` of `collector`, then the patch.
"""

from __future__ import annotations

import filecmp
import glob
import json
import os
import runpy
import shutil
import stat
import subprocess
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

__all__ = [
    "Base",
    "Found",
    "Git",
    "add_staged",
    "changes",
    "changes_alone",
    "clear",
    "drain",
    "folder_is_new",
    "forget",
    "ignored",
    "installed",
    "main",
    "nothing",
    "out_of_place",
    "report",
    "same",
    "settle",
    "shown",
    "take_index",
    "unwanted",
    "walk",
    "whole_tree",
    "write",
]

LARGE = 32 << 20
MOST_EXCLUDED = 500
MOST_RECORD = 4 << 20
MOST_INDEX = 64 << 20
MODULES = b"node_modules"
"""Left out as a whole, whatever of it has changed."""
SCRIPT = b"../../bin/"
"""How the record of a package that pip puts into a folder of the tree names its scripts."""
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
    "core.protectHFS": "true",
    "core.protectNTFS": "true",
    "core.bigFileThreshold": "64m",
    "advice.addEmbeddedRepo": "false",
}
OTHERS = ["ls-files", "-z", "--others", "--exclude-standard"]
DIFF = ["diff", "--cached", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-color"]
PATCH = ["--binary", "--full-index", "--src-prefix=a/", "--dst-prefix=b/"]


class Git:
    """A git directory and index that the run never saw, over the tree it has left."""

    def __init__(self, base: str, tree: str, scratch: str, commit: str, index: str = "") -> None:
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
        if os.path.isfile(index):
            shutil.copyfile(index, scratch + "/git/index")
        else:
            self.run("read-tree", commit)

    def run(
        self, *arguments: str, accept: tuple[int, ...] = (0,), data: bytes = b"", index: str = ""
    ) -> bytes:
        """Run git in the tree, with another index where one is named; return what it printed."""
        options = [part for name, value in SAFE.items() for part in ("-c", f"{name}={value}")]
        done = subprocess.run(
            ["git", *options, *arguments],
            cwd=self.tree,
            env=self.environment | ({"GIT_INDEX_FILE": index} if index else {}),
            input=data,
            stdout=subprocess.PIPE,
            check=False,
        )
        if done.returncode not in accept:
            raise subprocess.CalledProcessError(done.returncode, "git " + arguments[0])
        return done.stdout

    def feed(self, records: Iterable[bytes], *arguments: str) -> None:
        """Run git with records on its input, each of them ended by a NUL byte."""
        self.run(*arguments, data=b"".join(record + b"\0" for record in records))

    def paths(self, *arguments: str) -> list[bytes]:
        """Run git and split what it printed at its NUL bytes."""
        return [path for path in self.run(*arguments).split(b"\0") if path]


class Base:
    """What the base commit holds, read from an index that is still that of the commit."""

    def __init__(self, git: Git) -> None:
        told = [line.partition(b"\t") for line in git.paths("ls-files", "-z", "--stage")]
        self.entries = {path: facts for facts, _, path in told}
        """Mode, object and stage of each path."""
        self.paths = sorted(self.entries)
        self.submodules = {path for facts, _, path in told if facts.startswith(b"160000")}

    def has_file(self, path: bytes) -> bool:
        """Say whether a path is that of a file or link."""
        return path in self.entries and path not in self.submodules

    def has_folder(self, path: bytes) -> bool:
        """Say whether a path is that of a folder with something in it."""
        return bool(self.under(path))

    def under(self, folder: bytes) -> list[bytes]:
        """Return the paths in a folder."""
        after = bisect_left(self.paths, folder + b"0")
        return self.paths[bisect_left(self.paths, folder + b"/") : after]


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
            if not folder or base.has_folder(folder):
                yield found.path, found.path
            else:
                yield folder, folder + b"/"
        elif name == b"pyvenv.cfg" and folder and not base.has_folder(folder):
            yield folder, folder + b"/"
        elif name.endswith(b".dist-info") and folder_is_new(base, found):
            for path in installed(tree, found.path):
                if not base.has_file(path) and not base.has_folder(path):
                    yield path, path + b"/" if os.path.isdir(os.path.join(tree, path)) else path
        elif out_of_place(found) and not base.has_file(found.path):
            yield found.path, found.path


def folder_is_new(base: Base, found: Found) -> bool:
    """Say whether an entry is a folder that the commit does not have."""
    return stat.S_ISDIR(found.mode) and not base.has_folder(found.path)


def installed(tree: bytes, described: bytes) -> set[bytes]:
    """Return the uppermost paths of a package that was installed beside its description.

    Without a record of what was installed there is none: then somebody wrote the description.
    """
    record = os.path.join(tree, described, b"RECORD")
    if os.path.islink(record) or not os.path.isfile(record):
        return set()
    folder = os.path.dirname(described)
    found = {described}
    with open(record, "rb") as file:
        for line in file.read(MOST_RECORD).splitlines():
            path = line.rsplit(b",", 2)[0].strip(b'"')
            if path.startswith(SCRIPT):
                found.add(os.path.join(folder, b"bin", path[len(SCRIPT) :]))
            top = path.split(b"/")[0]
            if top not in (b"", b".", b".."):
                found.add(os.path.join(folder, top))
    return {path for path in found if os.path.lexists(os.path.join(tree, path))}


def out_of_place(found: Found) -> bool:
    """Say whether an entry is a link to an environment, or a file too large for a patch."""
    if stat.S_ISLNK(found.mode):
        return found.path.rpartition(b"/")[2] == b"venv"
    return stat.S_ISREG(found.mode) and found.size > LARGE


def clear(git: Git, base: Base) -> set[bytes]:
    """Take what git must not see out of the tree and return the names of it."""
    tree = os.fsencode(git.tree)
    doomed = list(unwanted(base, tree))
    for start in range(0, len(doomed), 500):
        paths = [os.path.join(tree, path) for path, _ in doomed[start : start + 500]]
        subprocess.run([b"rm", b"-rf", b"--", *paths], check=True)
    return {name for _, name in doomed}


def ignored(git: Git) -> list[bytes]:
    """Return new paths that are ignored, folders as one where all of them is."""
    return git.paths(*OTHERS, "--ignored", "--directory", "--no-empty-directory")


def changes(git: Git, commit: str) -> list[dict[str, object]]:
    """Return one object for each changed path."""
    found: list[dict[str, object]] = []
    counts: dict[bytes, list[str]] = {}
    told = iter(git.paths(*DIFF, "--raw", "--numstat", "-z", commit, "--"))
    for record in told:
        if record.startswith(b":"):
            path, status = next(told), record.split(b" ")[4].decode()[:1]
            found.append(
                {"path": shown(path), "status": status, "lines": counts.setdefault(path, [])}
            )
        else:
            added, deleted, path = record.split(b"\t", 2)
            counts[path][:] = [added.decode(), deleted.decode()]
    return found


def shown(path: bytes) -> str:
    """Return a path as text that any encoding takes."""
    return path.decode(errors="backslashreplace")


def write(path: str, content: bytes) -> None:
    """Write a small file."""
    with open(path, "wb") as file:
        file.write(content)


def report(git: Git, commit: str, excluded: Iterable[bytes], unrecorded: Sequence[bytes]) -> None:
    """Print the facts and the patch; `unrecorded` are changes that the index does not have."""
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


def settle(git: Git, base: Base, begun: bytes) -> list[bytes]:
    """Take what is gone out of the index and what is no file out of the tree; add ignore files.

    Returns the tracked paths that are there; they are entered anew, so that git looks into them
    whatever their times say.
    """
    tree = os.fsencode(git.tree)
    gone: set[bytes] = set()
    there: list[bytes] = []
    for path, mode, _ in walk(tree):
        if stat.S_ISDIR(mode):
            gone.update([path] if base.has_file(path) else ())
            continue
        gone.update(base.under(path))
        whole = os.path.join(tree, path)
        if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
            os.unlink(whole)
            gone.update([path] if path in base.entries else ())
            continue
        if stat.S_ISREG(mode):
            os.chmod(whole, stat.S_IMODE(mode) | stat.S_IRUSR)
        if path in base.entries:
            there.append(path)
    lines = [nothing(base.entries[path]) + b"\t" + path for path in sorted(gone)]
    lines += [base.entries[path] + b"\t" + path for path in there]
    git.feed(lines, "update-index", "-z", "--index-info")
    rules = [path for path in base.paths if path.rpartition(b"/")[2] == b".gitignore"]
    for path in rules:
        if path not in gone and not os.path.lexists(os.path.join(tree, path)):
            os.makedirs(os.path.dirname(os.path.join(tree, path)), exist_ok=True)
            shutil.copyfile(
                os.path.join(begun, path), os.path.join(tree, path), follow_symlinks=False
            )
    return there


def take_index(tree: str, scratch: str) -> str:
    """Take the git directory out of the tree; return the path where its index is then, if any."""
    inner, taken = tree + "/.git", scratch + "/staged"
    index = inner + "/index"
    plain = not os.path.islink(inner) and not os.path.islink(index) and os.path.isfile(index)
    if plain and os.path.getsize(index) <= MOST_INDEX:
        os.chmod(inner, 0o700)
        os.rename(index, taken)
        os.chmod(taken, 0o600)
    subprocess.run(["rm", "-rf", "--", inner], check=True)
    return taken


def add_staged(git: Git, base: Base, index: str) -> None:
    """Add new files that the run's own index names, whatever ignores them; but no junk."""
    try:
        told = git.run("ls-files", "-z", index=index) if os.path.isfile(index) else b""
    except subprocess.CalledProcessError:
        # Whatever the run has left there; then nothing counts as staged.
        return
    named = set(told.split(b"\0")).difference(base.entries)
    found = walk(os.fsencode(git.tree)) if named - {b""} else ()
    there = [path for path, mode, _ in found if path in named and not stat.S_ISDIR(mode)]
    if there:
        rules = "--exclude-from=" + git.environment["GIT_DIR"] + "/info/exclude"
        junk = set(git.paths("ls-files", "-z", "--others", "--ignored", rules))
        git.feed(
            [path for path in there if path not in junk], "update-index", "-z", "--add", "--stdin"
        )


def nothing(facts: bytes) -> bytes:
    """Return what stands in the place of an entry's facts to remove it."""
    return b"0 " + b"0" * len(facts.split(b" ")[1])


def forget(git: Git, base: Base, more: str) -> set[bytes]:
    """Take what folders hold that lay under the tree out of it; return what of that has changed."""
    tree = os.fsencode(git.tree)
    folders = [os.fsencode(folder) for folder in sorted(glob.glob(glob.escape(more) + "/*"))]
    changed = set()
    for path, mode, _ in list(walk(tree)) if folders else []:
        sources = [os.path.join(folder, path) for folder in folders]
        source = next(filter(os.path.lexists, sources), None)
        if source is None or stat.S_ISDIR(mode) or path in base.entries:
            continue
        target = os.path.join(tree, path)
        if not same(source, target):
            if MODULES in path.split(b"/"):
                continue
            changed.add(path)
        os.unlink(target)
    return changed


def same(one: bytes, other: bytes) -> bool:
    """Say whether two paths are of links to the same, or of files with the same content."""
    if os.path.islink(one) or os.path.islink(other):
        linked = os.path.islink(one) and os.path.islink(other)
        return linked and os.readlink(one) == os.readlink(other)
    return os.path.isfile(other) and filecmp.cmp(one, other, shallow=False)


def whole_tree(base: str, scratch: str, commit: str, more: str) -> None:
    """Unpack, clear, record, compare."""
    tree = scratch + "/tree"
    os.makedirs(tree)
    unpack = ["tar", "--extract", "--file=-", "--directory=" + tree, "--no-same-owner"]
    unpack += ["--no-same-permissions", "--delay-directory-restore", "--warning=no-timestamp"]
    subprocess.run(unpack, check=True)
    drain()
    index = take_index(tree, scratch)
    git = Git(base, tree, scratch, commit)
    before = Base(git)
    excluded = forget(git, before, more) | clear(git, before)
    # Compares contents without storing them: `add` would write every object that it cannot touch
    # in the read-only history.
    git.run("update-index", "-q", "--really-refresh", accept=(0, 1))
    git.run("add", "--all", "--ignore-errors", "--", ".", accept=(0, 1))
    add_staged(git, before, index)
    unrecorded = git.paths("diff-files", "-z", "--name-only", "--ignore-submodules=all")
    report(git, commit, excluded.union(ignored(git), git.paths(*OTHERS)), unrecorded)


def changes_alone(
    base: str, scratch: str, commit: str, more: str, begun: str, snapshot: str
) -> None:
    """Unpack what has changed since the run began, settle, clear, record, compare."""
    runpy.run_path(snapshot)["unpack"](os.fsencode(scratch), sys.stdin.buffer)
    drain()
    tree = scratch + "/repo"
    index = take_index(tree, scratch)
    git = Git(base, tree, scratch, commit, begun + "/.git/index")
    before = Base(git)
    excluded = forget(git, before, more)
    there = settle(git, before, os.fsencode(begun))
    excluded |= clear(git, before)
    git.feed([*there, *git.paths(*OTHERS)], "update-index", "-z", "--add", "--stdin")
    add_staged(git, before, index)
    # Git takes no name that stands for `.git` on another system.
    report(git, commit, excluded.union(ignored(git), git.paths(*OTHERS)), [])


def drain() -> None:
    """Read to the end what comes: the sender's own end is heard of after that."""
    while sys.stdin.buffer.read(1 << 16):
        pass


def main(base: str, scratch: str, commit: str, more: str, what: str, *others: str) -> None:
    """Compare by the way that the input is for."""
    os.umask(0o022)
    os.makedirs(scratch)
    if what == "tree":
        whole_tree(base, scratch, commit, more)
    else:
        changes_alone(base, scratch, commit, more, *others)


if __name__ == "__main__":
    main(*sys.argv[1:])
