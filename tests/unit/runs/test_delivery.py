"""A finished patch put where the user wants it, in real repositories."""

import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from turnout.core.runs import FileChange, Patch
from turnout.errors import DeliveryError
from turnout.runs.delivery import HostGit, OutputFolder, UserRepository
from turnout.testing.repositories import TinyRepository

ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent"}
FILES = {"a.py": "one\ntwo\nthree\n", "sub/b.py": "b\n"}
DIFF = b"""\
diff --git a/a.py b/a.py
--- a/a.py
+++ b/a.py
@@ -1,3 +1,3 @@
 one
-two
+2
 three
diff --git a/new.py b/new.py
new file mode 100644
--- /dev/null
+++ b/new.py
@@ -0,0 +1 @@
+new
"""
PATCH = Patch(DIFF, (FileChange("a.py", "modified", 1, 1), FileChange("new.py", "added", 1, 0)))


@pytest.fixture
def tiny(tmp_path: Path) -> TinyRepository:
    """Make a repository of two files."""
    return TinyRepository(tmp_path / "r", FILES)


def place(tiny: TinyRepository, folder: str = "") -> UserRepository:
    """Return the repository as a place for a patch, entered at one of its folders."""
    return UserRepository(HostGit(tiny.path / folder, ENVIRONMENT))


async def test_a_patch_is_applied_to_a_clean_tree(tiny: TinyRepository) -> None:
    """Changed and new files are there; nothing is staged."""
    await place(tiny).apply(PATCH)
    assert (tiny.path / "a.py").read_text() == "one\n2\nthree\n"
    assert (tiny.path / "new.py").read_text() == "new\n"


async def test_a_patch_is_applied_whole_from_within_a_folder(tiny: TinyRepository) -> None:
    """Git alone would leave out what is above that folder, without a word."""
    await place(tiny, "sub").apply(PATCH)
    assert (tiny.path / "a.py").read_text() == "one\n2\nthree\n"


async def test_changes_elsewhere_do_not_hinder(tiny: TinyRepository) -> None:
    """A dirty tree alone is no reason to refuse."""
    (tiny.path / "sub/b.py").write_text("mine\n")
    await place(tiny).apply(PATCH)
    assert (tiny.path / "sub/b.py").read_text() == "mine\n"
    assert (tiny.path / "new.py").exists()


@pytest.mark.parametrize(("mine", "other"), [("a.py", "new.py"), ("new.py", "a.py")])
async def test_a_file_with_changes_of_the_users_is_never_touched(
    tiny: TinyRepository, mine: str, other: str
) -> None:
    """An overlap refuses the whole patch, and names the file."""
    tiny.write({mine: "mine\n"})
    with pytest.raises(DeliveryError, match=f"changes in {mine}"):
        await place(tiny).apply(PATCH)
    assert (tiny.path / mine).read_text() == "mine\n"
    assert tiny.git("status", "--porcelain", "--", other) == ""


async def test_a_patch_that_does_not_fit_changes_nothing(tiny: TinyRepository) -> None:
    """The tree may have moved on since the base of the run."""
    tiny.commit("move on", {"a.py": "quite\nother\n"})
    with pytest.raises(DeliveryError, match="does not fit"):
        await place(tiny).apply(PATCH)
    assert not (tiny.path / "new.py").exists()


async def test_a_branch_holds_one_commit_and_leaves_the_tree_alone(tiny: TinyRepository) -> None:
    """Working tree, index and the current branch are as they were."""
    (tiny.path / "a.py").write_text("mine\n")
    before = tiny.git("status", "--porcelain")
    commit = await place(tiny, "sub").make_branch("fix", tiny.head, PATCH, "Fix a\n\nWhy.\n")
    assert tiny.git("status", "--porcelain") == before
    assert tiny.git("rev-parse", "fix") == commit
    assert tiny.git("rev-parse", "fix^") == tiny.head
    assert tiny.git("show", "fix:a.py") == "one\n2\nthree"
    assert tiny.git("log", "-1", "--format=%s|%an", "fix") == "Fix a|Turnout"
    assert not list((tiny.path / ".git").glob("turnout-index*"))


async def test_a_branch_that_exists_is_never_moved(tiny: TinyRepository) -> None:
    """Nor is a bad name taken."""
    tiny.git("branch", "fix")
    with pytest.raises(DeliveryError, match="already"):
        await place(tiny).check_branch("fix")
    with pytest.raises(DeliveryError, match="no valid name"):
        await place(tiny).check_branch("-x..y")


async def test_hooks_of_the_repository_are_not_run(tiny: TinyRepository, tmp_path: Path) -> None:
    """Neither way of delivery starts a program that the repository names."""
    mark = tmp_path / "ran"
    for name in ("reference-transaction", "post-index-change", "pre-commit", "fsmonitor"):
        hook = tiny.path / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
        hook.chmod(0o755)
    tiny.git("config", "core.fsmonitor", str(tiny.path / ".git/hooks/fsmonitor"))
    await place(tiny).make_branch("fix", tiny.head, PATCH, "Fix\n")
    await place(tiny).apply(PATCH)
    assert not mark.exists()


PROGRAMS = {
    "a clean filter": "git config filter.x.clean '{run}'; echo '* filter=x' > {info}",
    "a smudge filter": "git config filter.x.smudge '{run}'; echo '* filter=x' > {info}",
    "a filter process": "git config filter.x.process '{run}'; echo '* filter=x' > {info}",
    "a filter of an odd name": "printf '[filter \"\\377\"]\\nclean = {run}\\n' >> .git/config; "
    "printf '* filter=\\377\\n' > {info}",
    "an included filter": "git config -f .git/more filter.x.clean '{run}'; "
    "git config include.path more; echo '* filter=x' > {info}",
    "a filter of the tree": "git config filter.x.clean '{run}'; "
    "git config filter.x.smudge '{run}'; echo '* filter=x' > .gitattributes",
    "a converter of diffs": "git config diff.x.textconv '{run}'; "
    "git config diff.x.command '{run}'; git config diff.external '{run}'; echo '* diff=x' > {info}",
    "a merge driver": "git config merge.x.driver '{run}'; echo '* merge=x' > {info}",
    "a monitor": "git config core.fsmonitor '{run}'",
    "a pager and an editor": "git config core.pager '{run}'; git config core.editor '{run}'",
    "a signature": "git config commit.gpgSign true; git config gpg.program '{run}'",
    "a filter within a submodule": "git init -q m; cd m; git config user.name a; "
    "git config user.email a@b; git commit -q --allow-empty -m m; "
    "git config filter.x.clean '{run}'; echo '* filter=x' > {info}; echo 1 > z; "
    "git -c filter.x.clean=cat add z; cd ..; "
    "git add m 2>/dev/null; git commit -qm m; touch m/z",
    "objects that are elsewhere": "git config core.repositoryFormatVersion 1; "
    "git config extensions.partialClone o; git config remote.o.url /none; "
    "git config remote.o.promisor true; git config remote.o.uploadpack 'sh -c \"{run}\"'; "
    "rm -f .git/objects/$(git rev-parse HEAD:a.py | sed 's,..,&/,')",
}


def prepare(tiny: TinyRepository, trick: str, mark: Path) -> None:
    """Let the repository name a program that makes a mark."""
    tiny.git("config", "user.email", "a@b")
    tiny.git("config", "user.name", "A")
    (tiny.path / ".git/info").mkdir(exist_ok=True)
    script = trick.format(run=f"touch {mark}; cat", info=".git/info/attributes")
    subprocess.run(["sh", "-c", script], cwd=tiny.path, env=ENVIRONMENT, check=True)
    mark.unlink(missing_ok=True)
    (tiny.path / "a.py").touch()


@pytest.mark.cases
@pytest.mark.parametrize("trick", PROGRAMS.values(), ids=PROGRAMS)
async def test_nothing_that_the_repository_names_is_run(
    tiny: TinyRepository, tmp_path: Path, trick: str
) -> None:
    """Whatever its configuration and attributes say, no program of it starts."""
    mark = tmp_path / "ran"
    prepare(tiny, trick, mark)
    with suppress(DeliveryError):
        await place(tiny).make_branch("fix", tiny.head, PATCH, "Fix\n")
    with suppress(DeliveryError):
        await place(tiny).apply(PATCH)
    assert not mark.exists()
    if "promisor" not in trick:
        assert (tiny.path / "new.py").exists()
        assert tiny.git("show", "fix:new.py") == "new"


@pytest.mark.cases
async def test_a_working_tree_elsewhere_is_never_written(
    tiny: TinyRepository, tmp_path: Path
) -> None:
    """The repository's configuration cannot point a patch at another folder."""
    (tmp_path / "a.py").write_text(FILES["a.py"])
    tiny.git("config", "core.worktree", str(tmp_path))
    await place(tiny).apply(PATCH)
    assert (tmp_path / "a.py").read_text() == FILES["a.py"]
    assert not (tmp_path / "new.py").exists()
    assert (tiny.path / "new.py").exists()


@pytest.mark.cases
@pytest.mark.parametrize(
    "path", ["../out", ".git/hooks/pre-commit", "sub/.GIT/config", "/tmp/turnout-out", "way/out"]
)
async def test_a_patch_writes_only_beneath_the_tree(
    tiny: TinyRepository, tmp_path: Path, path: str
) -> None:
    """Neither above it, nor in git's own folder, nor through a link."""
    (tiny.path / "way").symlink_to(tmp_path)
    diff = f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
    patch = Patch(f"{diff}@@ -0,0 +1 @@\n+x\n".encode(), (FileChange(path, "added", 1, 0),))
    with pytest.raises(DeliveryError):
        await place(tiny).apply(patch)
    for folder in (tmp_path, Path("/tmp/turnout-out")):
        assert not (folder / "out").exists()
    assert not (tiny.path / ".git/hooks/pre-commit").exists()


async def test_line_ends_of_the_users_choice_are_kept(tiny: TinyRepository) -> None:
    """What git itself does between object and file is no program, and stays."""
    tiny.commit("eol", {".gitattributes": "*.py text eol=crlf\n"})
    (tiny.path / "a.py").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    await place(tiny).apply(PATCH)
    assert (tiny.path / "a.py").read_bytes() == b"one\r\n2\r\nthree\r\n"


async def test_a_linked_working_tree_and_a_bare_repository_will_do(
    tiny: TinyRepository, tmp_path: Path
) -> None:
    """A branch can be made in both; without a working tree there is nothing to apply to."""
    tiny.git("worktree", "add", "-q", str(tmp_path / "w"))
    linked = UserRepository(HostGit(tmp_path / "w", ENVIRONMENT))
    await linked.apply(PATCH)
    assert (tmp_path / "w/new.py").exists()
    tiny.git("clone", "-q", "--bare", ".", str(tmp_path / "b.git"))
    bare = UserRepository(HostGit(tmp_path / "b.git", ENVIRONMENT))
    assert await bare.make_branch("fix", tiny.head, PATCH, "Fix\n")
    with pytest.raises(DeliveryError, match="no working tree"):
        await bare.apply(PATCH)


def test_an_output_folder_is_made_and_written_once(tmp_path: Path) -> None:
    """The results of an earlier run are not overwritten."""
    folder = OutputFolder(tmp_path / "deep/out")
    folder.check(["patch.diff"])
    folder.write({"patch.diff": DIFF})
    assert (tmp_path / "deep/out/patch.diff").read_bytes() == DIFF
    with pytest.raises(DeliveryError, match=r"holds patch\.diff already"):
        folder.check(["patch.diff"])


def test_an_output_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """Before the work, not after it."""
    (tmp_path / "file").write_text("")
    with pytest.raises(DeliveryError, match="cannot be made"):
        OutputFolder(tmp_path / "file/out").check([])
