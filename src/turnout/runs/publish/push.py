"""Pushes a run's patch as a new branch, without git ever looking at what the run has made.

The patch is applied to the index of a bare repository of our own, which borrows the objects of the
base commit: no file of the tree is written, no configuration, attribute or hook of the repository
counts, and the commit depends on nothing but the run: a push that is done again is the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from turnout.core.ids import RunId
from turnout.core.service.publications import branch_of
from turnout.errors import DeliveryError, RepositoryError, ToolError
from turnout.sandbox.patches import check_patch
from turnout.sandbox.workspace.git import git_here, git_remote, last_line
from turnout.sandbox.workspace.history import fetch_history
from turnout.sandbox.workspace.process import Finished
from turnout.sandbox.workspace.source import Source

__all__ = ["Change", "push_branch"]

_QUICK: Final = 120.0
_PUSH: Final = 300.0
_AUTHOR: Final = "Turnout <turnout@localhost>"
_NO_ATTRIBUTES: Final = "* !filter !diff !merge !whitespace\n"
_RECEIVE: Final = (
    "git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.alternateRefsCommand=true "
    "-c receive.autogc=false receive-pack"
)
"""What takes a branch in where the repository is a folder of this machine: no hook runs, nor any
other program that its configuration names."""


@dataclass(frozen=True, slots=True)
class Change:
    """One commit on a base commit."""

    base_commit: str
    diff: bytes
    message: str
    at: datetime
    """Of the commit."""


async def push_branch(source: Source, run_id: RunId, change: Change, state_dir: Path) -> str:
    """Make the branch of a run where it is not there yet, with one commit, and return the commit.

    Where the branch is there with that very commit, all is well. `DeliveryError` where it is there
    with another one, where the patch does not fit, and, `passing`, where the repository cannot be
    reached or does not let us in.
    """
    try:
        check_patch(change.diff)
        history = await fetch_history(source, change.base_commit, state_dir)
    except ToolError as error:
        raise DeliveryError(error.message, mend=error.mend) from error
    except RepositoryError as error:
        raise DeliveryError(error.message, mend=error.mend, passing=True) from error
    try:
        with TemporaryDirectory(prefix="turnout-push-") as folder:
            ours = Path(folder) / "repository.git"
            await _borrow(ours, history, change.base_commit)
            commit = await _commit(ours, change)
            await _push(ours, source, commit, branch_of(run_id))
    except OSError as error:
        raise DeliveryError(f"The commit cannot be made: {error.strerror}", passing=True) from error
    return commit


async def _borrow(ours: Path, history: Path, commit: str) -> None:
    """Make a bare repository that has the objects of another, and nothing else of it."""
    kind = "sha256" if len(commit) == 64 else "sha1"
    options = ["--quiet", "--bare", "--template=", f"--object-format={kind}"]
    _check(await git_here(["init", *options, str(ours)], timeout=_QUICK))
    info = ours / "objects" / "info"
    info.mkdir(exist_ok=True)
    (info / "alternates").write_text(f"{history / 'objects'}\n")
    (ours / "info").mkdir(exist_ok=True)
    (ours / "info" / "attributes").write_text(_NO_ATTRIBUTES)
    shallow = history / "shallow"
    if shallow.is_file():
        (ours / "shallow").write_bytes(shallow.read_bytes())


async def _commit(ours: Path, change: Change) -> str:
    patch, written = ours / "change.diff", ours / "change.commit"
    patch.write_bytes(change.diff)
    await _git(ours, "read-tree", change.base_commit)
    guarded = ("-c", "core.protectHFS=true", "-c", "core.protectNTFS=true")
    await _git(ours, *guarded, "apply", "--cached", "--whitespace=nowarn", str(patch))
    tree = await _git(ours, "write-tree")
    signed = f"{_AUTHOR} {int(change.at.timestamp())} +0000"
    head = f"tree {tree}\nparent {change.base_commit}\nauthor {signed}\ncommitter {signed}\n"
    message = change.message.replace("\0", "")
    written.write_bytes(f"{head}\n{message}".encode(errors="backslashreplace"))
    return await _git(ours, "hash-object", "-t", "commit", "-w", str(written))


async def _push(ours: Path, source: Source, commit: str, branch: str) -> None:
    ref = f"refs/heads/{branch}"
    asked = [
        "--git-dir",
        str(ours),
        "push",
        "--porcelain",
        "--no-verify",
        "--no-follow-tags",
        "--recurse-submodules=no",
        # With nothing expected there the server takes it only where the branch is not there.
        f"--force-with-lease={ref}:",
    ]
    what = ["--", source.url, f"{commit}:{ref}"]
    if source.local:
        asked.append(f"--receive-pack={_RECEIVE}")
        done = await git_here([*asked, *what], timeout=_PUSH, fetches=True)
    else:
        done = await git_remote(
            [*asked, *what], url=source.url, timeout=_PUSH, access=source.access
        )
    if not done.ok:
        raise _refused(done, source, branch)


def _refused(done: Finished, source: Source, branch: str) -> DeliveryError:
    if done.code is None:
        return DeliveryError(f"{source.shown} did not take the branch in time.", passing=True)
    lines = done.stdout.decode(errors="backslashreplace").splitlines()
    why = next((line.rpartition("\t")[2] for line in lines if line.startswith("!\t")), "")
    if "stale info" in why or "already exists" in why:
        return DeliveryError(
            f"{source.shown} has a branch {branch} already, with another commit.",
            mend="It is not touched: rename or remove it, and retry the run.",
        )
    if why:
        said = _said([*done.stderr.splitlines(), why])
        return DeliveryError(f"{source.shown} does not take branch {branch}: {said}")
    return DeliveryError(
        f"{source.shown} cannot be pushed to: {last_line(done.stderr)}",
        mend="Check that the service reaches it, and that its token may push branches.",
        passing=True,
    )


def _said(lines: Sequence[str]) -> str:
    """Return what the server has said on the last line that it sent, else git's own reason."""
    remote = [line for line in lines[:-1] if line.startswith("remote: ") and line[8:].strip()]
    return last_line(remote[-1] if remote else lines[-1])


async def _git(ours: Path, *arguments: str) -> str:
    done = await git_here(["--git-dir", str(ours), *arguments], timeout=_QUICK)
    _check(done)
    return done.stdout.decode().strip()


def _check(done: Finished) -> None:
    if done.code is None:
        raise DeliveryError("git did not make the commit in time.", passing=True)
    if not done.ok:
        raise DeliveryError(f"The commit cannot be made: {last_line(done.stderr)}")
