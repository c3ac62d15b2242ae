"""Where an instance is worked on: a commit that holds what the agent is to find.

The commits are made of objects alone: nothing of the repository is checked out here, and no program
that it names is run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from turnout.errors import RepositoryError, UsageError
from turnout.evals.instances.clone import Clone
from turnout.evals.instances.model import Instance
from turnout.evals.trials.model import Mode
from turnout.runs.intake import without_credentials
from turnout.sandbox.repository import resolve
from turnout.sandbox.workspace.folders import short_hash
from turnout.sandbox.workspace.git import git_here, last_line
from turnout.sandbox.workspace.history import fetch_history
from turnout.sandbox.workspace.locks import locked
from turnout.sandbox.workspace.source import locate
from turnout.sandbox.workspace.use import touched

__all__ = ["Place", "Places", "check_mode"]

_TIMEOUT: Final = 120.0
_NOBODY: Final = "Turnout <turnout@localhost> 1704067200 +0000"
"""Author of made commits: equal trees become equal commits, whose base layers are made once."""
_FILE_MODE: Final = "100644"
_AT_ONCE: Final = 200
"""Files in one call of git."""


@dataclass(frozen=True, slots=True)
class Place:
    """A commit of a repository on this machine, or at a URL."""

    repository: str
    base: str


def check_mode(instance: Instance, mode: Mode) -> None:
    """Refuse (`UsageError`) an instance that nobody could solve in that mode."""
    if mode == "hidden" and instance.spec == "needs-tests":
        raise UsageError(
            f"{instance.instance_id} says too little to be solved without seeing its tests.",
            mend="Run it with --mode visible, or leave it out.",
        )


class Places:
    """Makes commits for instances, each once."""

    def __init__(self, state_dir: Path) -> None:
        """Keep them in the state folder, beneath `places`, until they are long unused."""
        self._state_dir = state_dir
        self._known: dict[tuple[str, Mode], Place] = {}
        """By digest of the row: every arm and every try asks for the same."""

    async def of(self, instance: Instance, mode: Mode) -> Place:
        """Return where an instance is worked on; `RepositoryError` where that cannot be had.

        In visible mode it holds the tests that will grade.
        """
        key = (instance.digest, mode)
        if key not in self._known:
            self._known[key] = await self._found(instance, mode)
        return self._known[key]

    async def _found(self, instance: Instance, mode: Mode) -> Place:
        files: dict[str, str | None] = {**instance.files, **instance.extra_files}
        if mode == "visible":
            files.update(instance.hidden_tests)
        patch = instance.test_patch if mode == "visible" else ""
        if instance.repository and not files and not patch:
            return await _as_it_is(instance)
        return await self._made(instance, files, patch)

    async def _made(self, instance: Instance, files: Mapping[str, str | None], patch: str) -> Place:
        parent = await self._parent(instance) if instance.repository else None
        # One of ours for each repository: its commits have most of their objects in common.
        name = "own" if parent is None else parent[2]
        git = _Git(self._state_dir / "places" / f"{name}.git")
        lock = self._state_dir / "locks" / f"place-{name}"
        async with locked(lock, timeout=_TIMEOUT):
            await git.begin()
            touched(self._state_dir, git.folder)
            if parent is not None:
                await git.fetch(*parent[:2])
            tree = await git.tree(parent[1] if parent else None, files, patch)
            commit = await git.commit(tree, parent[1] if parent else None)
            await git.run("update-ref", f"refs/heads/{commit}", commit)
        return Place(str(git.folder), commit)

    async def _parent(self, instance: Instance) -> tuple[Path, str, str]:
        """Return a git directory that holds the base of an instance, its name, and the source's."""
        repository = _plain(instance.repository)
        commit = (await resolve(repository, instance.base_commit)).commit
        source = await locate(repository)
        history = await fetch_history(source, commit, self._state_dir)
        return history, commit, short_hash(source.url)


async def _as_it_is(instance: Instance) -> Place:
    """Return the base itself, once a clone of this machine was seen to hold it.

    Otherwise a run would be ordered that can come to nothing, and be ordered again.
    """
    repository = _plain(instance.repository)
    source = await locate(repository)
    if source.local:
        await Clone(repository, source.url).commit_of(instance.base_commit)
    return Place(repository, instance.base_commit)


def _plain(repository: str) -> str:
    """Refuse an address that holds a password: it would be on record."""
    if without_credentials(repository) != repository:
        raise RepositoryError(
            "The address of the repository holds a password.",
            mend="Clone it, and name the clone: --repos DIR.",
        )
    return repository


@dataclass(frozen=True, slots=True)
class _Git:
    """A bare repository of ours; one process at a time works on it."""

    folder: Path

    async def begin(self) -> None:
        """Make it, unless it is there; what a git that was killed has locked is free again."""
        for left in self.folder.rglob("*.lock"):
            left.unlink(missing_ok=True)
        if not (self.folder / "HEAD").exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            await self.run("init", "--quiet", "--bare", "--template=", "--initial-branch=none")

    async def fetch(self, history: Path, commit: str) -> None:
        """Have a commit of another repository of this machine here."""
        kept = f"refs/bases/{commit}"
        names = ["--quiet", "--no-tags", "--no-write-fetch-head", "--", str(history)]
        await self.run("fetch", *names, f"+{commit}:{kept}", fetches=True)

    async def tree(self, parent: str | None, files: Mapping[str, str | None], patch: str) -> str:
        """Return the tree of a commit, or an empty one, with these files and a patch applied."""
        await self.run("read-tree", *([parent] if parent else ["--empty"]))
        with TemporaryDirectory(prefix="turnout-place-") as folder:
            await self._add(Path(folder), files)
            if patch:
                at = _write(Path(folder) / "patch", patch)
                await self.run("apply", "--cached", "--whitespace=nowarn", "--", str(at))
        return await self.run("write-tree")

    async def _add(self, folder: Path, files: Mapping[str, str | None]) -> None:
        """Put files into the index, or out of it; `folder` is empty."""
        gone = [path for path, text in files.items() if text is None]
        written = [(path, text) for path, text in files.items() if text is not None]
        if gone:
            work_tree = ["--work-tree", str(folder)]
            await self.run("update-index", "--force-remove", "--", *gone, options=work_tree)
        for start in range(0, len(written), _AT_ONCE):
            part = written[start : start + _AT_ONCE]
            places = [str(_write(folder / str(n), text)) for n, (_, text) in enumerate(part)]
            blobs = await self.run("hash-object", "-w", "--no-filters", "--", *places)
            entries = [
                word
                for blob, (path, _) in zip(blobs.split(), part, strict=True)
                for word in ("--cacheinfo", f"{_FILE_MODE},{blob},{path}")
            ]
            await self.run("update-index", "--add", "--replace", *entries)

    async def commit(self, tree: str, parent: str | None) -> str:
        """Return a commit of a tree; the same for the same."""
        lines = [f"tree {tree}"]
        if parent is not None:
            lines.append(f"parent {parent}")
        lines += [f"author {_NOBODY}", f"committer {_NOBODY}", "", "base", ""]
        with TemporaryDirectory(prefix="turnout-place-") as folder:
            at = _write(Path(folder) / "commit", "\n".join(lines))
            return await self.run("hash-object", "-w", "-t", "commit", "--", str(at))

    async def run(self, *arguments: str, options: Sequence[str] = (), fetches: bool = False) -> str:
        """Run git on it and return what it prints; `RepositoryError` where it fails."""
        git = ["--git-dir", str(self.folder), *options, *arguments]
        done = await git_here(git, timeout=_TIMEOUT, fetches=fetches)
        if not done.ok:
            said = last_line(done.stderr)
            raise RepositoryError(f"git {arguments[0]} failed on a commit to begin with: {said}")
        return done.stdout.decode().strip()


def _write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path
