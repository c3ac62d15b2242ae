"""A user's clone, read by git's plumbing: nothing is checked out, and no code of it runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from turnout.errors import RepositoryError
from turnout.sandbox.workspace.git import git_here, last_line
from turnout.sandbox.workspace.process import Finished
from turnout.sandbox.workspace.source import locate

__all__ = ["MOST_BYTES", "Change", "Clone", "Commit", "find_clone"]

MOST_BYTES: Final = 4 << 20
"""Of one file or diff: what is longer is not read."""

_TIMEOUT = 120.0
_DIFF: Final = (
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-renames",
    "--ignore-submodules=all",
    "--src-prefix=a/",
    "--dst-prefix=b/",
)
_FIELDS: Final = "%H%x00%P%x00%cI%x00%s%x00%b%x00%x00"


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of the main line, without its contents."""

    name: str
    """Full object name."""
    parents: tuple[str, ...]
    at: str
    """When it was committed, in ISO 8601."""
    subject: str
    body: str


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one path between two commits."""

    path: str
    status: str
    """Git's letter: `A` added, `M` modified, `D` deleted, `T` of another type."""
    regular: bool
    """Whether it is a regular file in both, as far as it is there."""


class Clone:
    """A repository of the user's, by its git directory."""

    def __init__(self, path: str, git_dir: str) -> None:
        self.path = path
        """As it was named."""
        self._git_dir = git_dir

    @classmethod
    async def open(cls, path: str) -> "Clone":
        """Open the clone at a path; `RepositoryError` where there is none, and for a URL."""
        source = await locate(path)
        if not source.local:
            raise RepositoryError(
                f"{source.shown} is on another machine.",
                mend="Clone it with its whole history, and name the folder of the clone.",
            )
        return cls(path, source.url)

    async def commit_of(self, revision: str) -> str:
        """Return the full name of the commit that a revision names."""
        asked = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"]
        done = await self._git(*asked)
        if not done.ok:
            raise RepositoryError(
                f"{self.path} has no commit {revision[:100]!r}.",
                mend="Fetch it, or use a clone with the whole history.",
            )
        return done.stdout.decode().strip()

    async def line(
        self, start: str, *, skip: int, count: int, since: str = ""
    ) -> tuple[Commit, ...]:
        """Return commits of the main line, newest first: a merge stands for what it brings in.

        There are fewer than `count` where their messages are long, and none at the end alone.
        """
        options = ["--first-parent", f"--skip={skip}", f"--max-count={count}"]
        options += [f"--since={since}"] if since else []
        read = ["log", *options, f"--format={_FIELDS}", "--end-of-options", start, "--"]
        data = await self._must(*read)
        if len(data) >= MOST_BYTES and count > 1:
            return await self.line(start, skip=skip, count=max(1, count // 8), since=since)
        text = data.decode(errors="replace")
        return tuple(_commit(each) for each in text.split("\0\0\n") if each.strip("\n"))

    async def length(self, start: str, *, since: str = "") -> int:
        """Return how many commits the main line has from there on."""
        options = [f"--since={since}"] if since else []
        read = ["rev-list", "--count", "--first-parent", *options, "--end-of-options", start, "--"]
        return int(await self._must(*read))

    async def changes(self, base: str, commit: str) -> tuple[Change, ...] | None:
        """Return the paths that differ, those that are UTF-8; None where they are too many."""
        read = ["diff-tree", "-r", "-z", "--raw", *_DIFF, "--end-of-options", base, commit, "--"]
        data = await self._must(*read)
        if len(data) >= MOST_BYTES:
            return None
        parts = data.split(b"\0")
        found = []
        for facts, name in zip(parts[::2], parts[1::2], strict=False):
            old, new, _, _, status = facts.decode().removeprefix(":").split(" ")
            regular = all(mode in ("000000", "100644", "100755") for mode in (old, new))
            try:
                found.append(Change(name.decode(), status[:1], regular))
            except UnicodeDecodeError:
                continue
        return tuple(found)

    async def diff(
        self, base: str, commit: str, paths: Sequence[str], *, context: int = 3
    ) -> str | None:
        """Return what `git apply` takes for these paths; None where it is too long or no text."""
        if not paths:
            return ""
        literal = [f":(literal,top){path}" for path in paths]
        options = [*_DIFF, "--binary", "--full-index", f"--unified={context}"]
        read = ["diff-tree", "-r", "-p", *options, "--end-of-options", base, commit, "--", *literal]
        return _text(await self._must(*read))

    async def text(self, commit: str, path: str) -> str | None:
        """Return a file; None where it is not there, too long or no text."""
        done = await self._git("cat-file", "blob", f"{commit}:{path}")
        return _text(done.stdout) if done.ok else None

    async def paths(self, commit: str) -> frozenset[str]:
        """Return the files at a commit, as far as their names are UTF-8; 4 MiB of names at most."""
        read = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", commit]
        names = (await self._must(*read)).split(b"\0")[:-1]
        return frozenset(name.decode(errors="replace") for name in names)

    async def origin(self) -> str:
        """Return the URL of the remote that it was cloned from; empty where none is set."""
        done = await self._git("config", "--get", "remote.origin.url")
        return done.stdout.decode(errors="replace").strip() if done.ok else ""

    async def objects(self) -> str:
        """Return the folder of its objects."""
        done = await self._must("rev-parse", "--path-format=absolute", "--git-path", "objects")
        return done.decode(errors="surrogateescape").removesuffix("\n")

    async def object_format(self) -> str:
        """Return what its objects are named by: `sha1` or `sha256`."""
        return (await self._must("rev-parse", "--show-object-format")).decode().strip()

    async def _must(self, *arguments: str) -> bytes:
        done = await self._git(*arguments)
        if not done.ok:
            raise RepositoryError(
                f"{self.path} cannot be read: {last_line(done.stderr)}",
                mend="Check it with git fsck; a clone with the whole history is needed.",
            )
        return done.stdout

    async def _git(self, *arguments: str) -> Finished:
        return await git_here(["--git-dir", self._git_dir, *arguments], timeout=_TIMEOUT)


def find_clone(repo: str, repositories: Path | None) -> Path | None:
    """Return the folder beneath `repositories` that holds a clone of `owner/name`."""
    if repositories is None or not repo or ".." in repo.split("/"):
        return None
    owner, _, name = repo.rpartition("/")
    for folder in (repositories / repo, repositories / f"{owner}__{name}", repositories / name):
        if folder.is_dir():
            return folder.absolute()
    return None


def _commit(text: str) -> Commit:
    # A message of megabytes is cut, be it before its last field.
    name, parents, at, subject, body = f"{text.lstrip()}\0\0\0\0".split("\0", 4)
    return Commit(name, tuple(parents.split()), at, subject, body.strip("\0 \n"))


def _text(data: bytes) -> str | None:
    """Return data as text that is the same bytes again when it is written."""
    if len(data) >= MOST_BYTES or b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
