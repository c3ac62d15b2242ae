import os
import shutil
import stat
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turnout.core.runs import Patch
from turnout.sandbox.collector import read_collected
from turnout.testing.repositories import TinyRepository

PARTS = [
    "a",
    "b c",
    "-n",
    "x\ny",
    '"q"',
    "'",
    "tab\t",
    "back\\slash",
    "café",
    "\udcff\udcfe",
    "[id]",
    "*",
    "{",
    "$HOME",
    "b",
    "a b",
    "dev",
    "null",
    ".hidden",
    "n" * 200,
    "node_modules",
    "venv",
    "x.pyc",
]
CONTENTS = [
    b"",
    b"x",
    b"one\ntwo\n",
    b"one\r\ntwo\r\n",
    b"\0\1\2" * 50,
    b"\xff\n",
    b"no end\nof line",
    b"\n",
    b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n",
    b"a\rb\n",
    b"\xef\xbb\xbfbom\n",
    b"$Id$\n",
]
ATTRIBUTES = [b"* text eol=crlf\n", b"* -diff binary ident\n"]
PATHS = st.lists(st.sampled_from(PARTS), min_size=1, max_size=3).map("/".join)
DATA = st.sampled_from(CONTENTS) | st.binary(max_size=40)
FILES = st.dictionaries(PATHS, st.tuples(DATA, st.booleans()), max_size=6)
STEP = st.one_of(
    st.tuples(st.just("write"), PATHS, DATA),
    st.tuples(st.just("write"), st.just(".gitattributes"), st.sampled_from(ATTRIBUTES)),
    st.tuples(st.just("delete"), PATHS),
    st.tuples(st.just("mode"), PATHS, st.sampled_from([0o755, 0o644, 0o600, 0o701])),
    st.tuples(st.just("link"), PATHS, PATHS),
    st.tuples(st.just("move"), PATHS, PATHS),
    st.tuples(st.just("commit")),
    st.tuples(st.just("stage")),
)


def remove(path: Path) -> None:
    """Remove whatever is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def make_room(tree: Path, path: str) -> Path:
    """Remove what is in the way of a new entry, make its folders, and return its path."""
    target = tree / path
    for folder in reversed(target.relative_to(tree).parents):
        at = tree / folder
        if at.is_symlink() or at.is_file():
            at.unlink()
    target.parent.mkdir(parents=True, exist_ok=True)
    remove(target)
    return target


def write(tree: Path, path: str, data: bytes, mode: int = 0o644) -> None:
    """Write a file, whatever was there before."""
    target = make_room(tree, path)
    target.write_bytes(data)
    target.chmod(mode)


def within(tree: Path, path: str) -> Path | None:
    """Return what is at a path, if no link leads there."""
    at = tree
    for part in path.split("/"):
        if at.is_symlink():
            return None
        at /= part
    return at if at.is_symlink() or at.exists() else None


def change(repository: TinyRepository, step: tuple) -> None:
    """Do one thing that a run may do."""
    tree = repository.path
    match step:
        case ("write", path, data):
            write(tree, path, data)
        case ("delete", path):
            if found := within(tree, path):
                remove(found)
        case ("mode", path, mode):
            found = within(tree, path)
            if found and found.is_file() and not found.is_symlink():
                found.chmod(mode)
        case ("link", path, target):
            make_room(tree, path).symlink_to(target)
        case ("move", path, target):
            found = within(tree, path)
            if found and not target.startswith(path) and not path.startswith(target):
                found.rename(make_room(tree, target))
        case ("commit",):
            repository.git("add", "--all")
            repository.git("commit", "--quiet", "--allow-empty", "--message", "work")
        case ("stage",):
            repository.git("add", "--all")


def inside(name: str, *arguments: object, data: bytes = b"") -> bytes:
    """Run a program that is meant for the inside of a sandbox."""
    source = files("turnout.sandbox.inside").joinpath(name).read_text("utf-8")
    argv = [sys.executable, "-ISE", "-c", source, *map(str, arguments)]
    return subprocess.run(argv, input=data, capture_output=True, check=True).stdout


def collect(base: Path, tree: Path, commit: str, scratch: Path) -> Patch:
    """Compare a whole tree with its base as a collector does."""
    pack = ["tar", "--create", "--file=-", "--format=gnu", "--exclude=./.git", "."]
    stream = subprocess.run(pack, cwd=tree, capture_output=True, check=True).stdout
    arguments = (base, scratch, commit, "/nonexistent", "tree")
    return read_collected(inside("collect.py", *arguments, data=stream))


def collect_changes(base: Path, begun: Path, tree: Path, commit: str, scratch: Path) -> Patch:
    """Compare what has changed in a tree with its base as a collector does."""
    upper = scratch.with_name(f"{scratch.name}-upper")
    lay_over(begun, tree, upper)
    snapshot = str(files("turnout.sandbox.inside").joinpath("snapshot.py"))
    pack = [sys.executable, "-ISE", snapshot, "pack", "repo", upper, begun, tree]
    stream = subprocess.run(pack, capture_output=True, check=True).stdout
    arguments = (base, scratch, commit, "/nonexistent", "changes", begun, snapshot)
    return read_collected(inside("collect.py", *arguments, data=stream))


def lay_over(below: Path, tree: Path, upper: Path) -> None:
    """Make the writable part of an overlay on `below` whose result is `tree`."""
    upper.mkdir()
    before = {path.name for path in below.iterdir()}
    after = {path.name for path in tree.iterdir()}
    for name in before - after:
        os.mknod(upper / name, stat.S_IFCHR, os.makedev(0, 0))
    for name in after:
        old, new = below / name, tree / name
        if is_folder(new) and is_folder(old):
            lay_over(old, new, upper / name)
        elif is_folder(new):
            shutil.copytree(new, upper / name, symlinks=True)
        elif not same(old, new):
            shutil.copy2(new, upper / name, follow_symlinks=False)


def is_folder(path: Path) -> bool:
    """Say whether a path is that of a folder itself."""
    return path.is_dir() and not path.is_symlink()


def same(old: Path, new: Path) -> bool:
    """Say whether a file or link was left alone."""
    if old.is_symlink() or new.is_symlink():
        return old.is_symlink() and new.is_symlink() and old.readlink() == new.readlink()
    alike = old.is_file() and old.stat().st_mode == new.stat().st_mode
    return alike and old.read_bytes() == new.read_bytes()


def tree_of(folder: Path, scratch: Path) -> str:
    """Return the tree id of a folder's files, byte for byte, by a git of our own."""
    (folder / ".git").rename(scratch / "theirs")
    own = TinyRepository(folder)
    (folder / ".git" / "info").mkdir(exist_ok=True)
    (folder / ".git" / "info" / "attributes").write_text("* !text !eol !ident !filter !crlf\n")
    own.git("add", "--all", "--force")
    return own.git("write-tree")


def leave_out(tree: Path, names: tuple[str, ...]) -> None:
    """Remove what a patch says that it leaves out."""
    for path in sorted(tree.rglob("*")):
        shown = os.fsencode(path.relative_to(tree)).decode(errors="backslashreplace")
        if f"{shown}/" in names if is_folder(path) else shown in names:
            remove(path)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(FILES, st.lists(STEP, max_size=8))
def test_the_patch_makes_the_same_tree_of_a_fresh_clone(base_files, steps):
    """Whatever a run does to its files and its git, the patch has all of it or names it."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        source = TinyRepository(root / "source")
        for path, (data, executable) in base_files.items():
            write(source.path, path, data, 0o755 if executable else 0o644)
        commit = source.commit("base")
        source.git("clone", "--quiet", "--bare", ".", str(root / "base.git"))
        (root / "tree").mkdir()
        inside("checkout.py", root / "base.git", root / "tree", commit)
        workspace = TinyRepository(root / "tree")
        assert workspace.git("status", "--porcelain") == ""
        for step in steps:
            change(workspace, step)
        patch = collect(root / "base.git", root / "tree", commit, root / "collect")
        (root / "begun").mkdir()
        inside("checkout.py", root / "base.git", root / "begun", commit)
        assert patch == collect_changes(
            root / "base.git", root / "begun", root / "tree", commit, root / "changes"
        )
        clone = TinyRepository(root / "clone")
        clone.git("fetch", "--quiet", str(root / "base.git"), "main")
        clone.git("reset", "--quiet", "--hard", commit)
        if patch:
            (root / "patch").write_bytes(patch.diff)
            clone.git("apply", "--index", "--whitespace=nowarn", str(root / "patch"))
        leave_out(root / "tree", patch.excluded)
        assert clone.git("write-tree") == tree_of(root / "tree", root)
        assert bool(patch) == bool(patch.files)
