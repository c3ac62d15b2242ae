"""The commits that a workspace may know: its base and the ancestors of it, nothing more."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from turnout.errors import RepositoryError
from turnout.sandbox.rooms.disk import NO_SPACE, full_disk
from turnout.sandbox.workspace.building import building
from turnout.sandbox.workspace.folders import private, short_hash, traversable
from turnout.sandbox.workspace.git import git_here, git_remote, last_line
from turnout.sandbox.workspace.locks import locked
from turnout.sandbox.workspace.process import run_program
from turnout.sandbox.workspace.source import Source, locate
from turnout.sandbox.workspace.use import touched

__all__ = ["Compared", "compare", "fetch_history"]

_QUICK = 30.0
_DIFF_TIMEOUT = 120.0
_FETCH_TIMEOUT = 900.0
_DIFF = (
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--binary",
    "--full-index",
    "--ignore-submodules=all",
    "--src-prefix=a/",
    "--dst-prefix=b/",
)
"""What makes a diff the same for everybody, without a program that anybody has configured."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What a commit changes."""

    base: str
    """The newest commit that both sides have."""
    diff: bytes
    """What `git apply` takes there; cut after 4 MiB."""


async def fetch_history(source: Source, commit: str, state_dir: Path) -> Path:
    """Return a bare git directory that holds `commit` as branch `main`, and its ancestors.

    It has no other branch, no tag, no remote and no reflog, and it never changes again. Commits
    are kept in a private mirror per repository, so that the next base costs little.
    `RepositoryError` where the commit cannot be had.
    """
    name = short_hash(source.url)
    history = state_dir / "histories" / f"{name}-{commit}.git"
    if touched(state_dir, history):
        return history
    traversable(history.parent)
    async with locked(state_dir / "locks" / f"mirror-{name}", timeout=_FETCH_TIMEOUT):
        if not touched(state_dir, history):
            mirror = private(state_dir / "mirrors") / f"{name}.git"
            await _update_mirror(mirror, source, commit)
            touched(state_dir, mirror)
            await _cut_out(mirror, commit, history)
    return history


async def compare(repository: str, base: str, head: str, state_dir: Path) -> Compared:
    """Return what the commit `head` changes since it has left `base`.

    Both are full object names of a path or URL. `RepositoryError` where one cannot be had, or where
    they have no commit in common.
    """
    source = await locate(repository)
    name = short_hash(source.url)
    mirror = private(state_dir / "mirrors") / f"{name}.git"
    traversable(state_dir / "locks")
    async with locked(state_dir / "locks" / f"mirror-{name}", timeout=_FETCH_TIMEOUT):
        for commit in (base, head):
            await _update_mirror(mirror, source, commit)
        touched(state_dir, mirror)
        return await _compare(mirror, source, base, head)


async def _compare(mirror: Path, source: Source, base: str, head: str) -> Compared:
    git = ["--git-dir", str(mirror)]
    found = await git_here([*git, "merge-base", base, head], timeout=_DIFF_TIMEOUT)
    common = found.stdout.decode().strip()
    if not found.ok or not common:
        raise RepositoryError(
            f"{base[:12]} and {head[:12]} of {source.shown} have no commit in common.",
            mend="Name a base that the change was made on.",
        )
    done = await git_here([*git, "diff", *_DIFF, common, head, "--"], timeout=_DIFF_TIMEOUT)
    if not done.ok:
        raise RepositoryError(f"Commits cannot be compared: {last_line(done.stderr)}")
    return Compared(common, done.stdout)


async def _update_mirror(mirror: Path, source: Source, commit: str) -> None:
    _unlock(mirror)
    await _make_bare(mirror, commit)
    kept = f"refs/bases/{commit}"
    if await _holds(mirror, kept):
        return
    done = await _fetch(mirror, source, [f"+{commit}:{kept}"])
    if done and not source.local and "time" not in done:
        # The server hands out branches and tags only.
        names = ["+refs/heads/*:refs/remotes/*", "+refs/tags/*:refs/tags/*"]
        done = await _fetch(mirror, source, names)
        if not done and await _holds(mirror, commit):
            await _git(mirror, "update-ref", kept, commit)
    if done or not await _holds(mirror, kept):
        if source.local and await _is_partial(source.url):
            raise _partial(source, commit)
        raise RepositoryError(
            f"{source.shown} does not give commit {commit[:12]}: {done or 'it has no such commit'}",
            mend="Check that the commit and its ancestors are there: git log, git fsck.",
        )


async def _is_partial(git_dir: str) -> bool:
    """Say whether a repository is one that leaves contents with the one that it was cloned from."""
    asked = ["config", "--get-regexp", r"^(extensions\.partialclone|remote\..*\.promisor)$"]
    return (await git_here(["--git-dir", git_dir, *asked], timeout=_QUICK)).ok


def _partial(source: Source, commit: str) -> RepositoryError:
    return RepositoryError(
        f"{source.shown} is a partial clone, without all files of commit {commit[:12]} and of its "
        "ancestors.",
        mend=f"Fetch the rest: git -C {shlex.quote(source.shown)} fetch --refetch --no-filter. "
        "Or name a full clone.",
    )


def _unlock(mirror: Path) -> None:
    """Take away the locks of a git that was killed; whoever writes here holds our own."""
    for left in mirror.rglob("*.lock"):
        left.unlink(missing_ok=True)


async def _fetch(mirror: Path, source: Source, names: Sequence[str]) -> str:
    """Fetch into the mirror and return why it failed, or nothing."""
    options = ["--quiet", "--no-tags", "--no-write-fetch-head", "--update-shallow"]
    arguments = ["--git-dir", str(mirror), "fetch", *options, "--", source.url, *names]
    if source.local:
        done = await git_here(arguments, timeout=_FETCH_TIMEOUT, fetches=True)
    else:
        done = await git_remote(
            arguments, url=source.url, timeout=_FETCH_TIMEOUT, access=source.access
        )
    if done.code is None:
        return "it did not answer in time"
    _check_space(done.stderr, mirror)
    return "" if done.ok else last_line(done.stderr)


async def _cut_out(mirror: Path, commit: str, history: Path) -> None:
    async with building(history.parent, history.name) as folder:
        made = folder / history.name
        await _make_bare(made, commit)
        await _git(mirror, "config", "uploadpack.allowAnySHA1InWant", "true")
        names = [f"{commit}:refs/heads/main"]
        if failed := await _fetch(made, Source(str(mirror), local=True), names):
            raise RepositoryError(
                f"The mirror of the repository is damaged: {failed}", mend=f"Remove {mirror}."
            )
        await run_program(["chmod", "-R", "a+rX,go-w", str(made)], timeout=_QUICK)
        made.rename(history)


def _check_space(said: str, folder: Path) -> None:
    """Raise where git has failed because our disk is full, not that of a server."""
    if any(NO_SPACE in line for line in said.splitlines() if not line.startswith("remote:")):
        raise full_disk(folder.parent)


async def _make_bare(folder: Path, commit: str) -> None:
    kind = "sha256" if len(commit) == 64 else "sha1"
    options = ["--quiet", "--bare", "--template=", "--initial-branch=main"]
    done = await git_here(
        ["init", *options, f"--object-format={kind}", str(folder)], timeout=_QUICK
    )
    if not done.ok:
        _check_space(done.stderr, folder)
        raise RepositoryError(
            f"{folder} cannot be made: {last_line(done.stderr)}",
            mend="Check the rights and the space of the state folder.",
        )


async def _holds(git_dir: Path, name: str) -> bool:
    return await _git(git_dir, "cat-file", "-e", f"{name}^{{commit}}")


async def _git(git_dir: Path, *arguments: str) -> bool:
    return (await git_here(["--git-dir", str(git_dir), *arguments], timeout=_QUICK)).ok
