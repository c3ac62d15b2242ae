"""Puts a finished patch where the user wants it: the working tree, a branch or a folder.

This is the one place where git runs on the user's own repository with what a run made. The patch
goes in on standard input. Wherever git looks into files, it does so by a git directory of our own
that borrows the repository's objects: the repository's configuration can name filters, monitors
and other programs, or another working tree, and none of that counts. Nothing of the user's own
work is ever overwritten.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from turnout.core.runs import Patch
from turnout.errors import DeliveryError

__all__ = ["GitOutput", "HostGit", "OutputFolder", "UserRepository"]

_SECONDS: Final = 120.0

_HARDENED: Final = (
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "commit.gpgSign=false",
    "-c",
    "core.protectHFS=true",
    "-c",
    "core.protectNTFS=true",
    "--no-pager",
)

_FIXED: Final = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    # A repository that claims to be a part of another names the program that gets the rest.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}

_ATTRIBUTES: Final = "* !filter !diff !merge\n"
"""Wins over every other file of attributes; what git does to line ends by itself stays."""

_PATHS_AT_ONCE: Final = 200

_ABSENT: Final = "0" * 40
"""What `git update-ref` takes for: only if there is no such reference."""


@dataclass(frozen=True, slots=True)
class GitOutput:
    """What git said."""

    code: int
    stdout: bytes
    stderr: str


@dataclass(frozen=True, slots=True)
class HostGit:
    """Runs the host's git in one repository of the user."""

    folder: Path
    environment: Mapping[str, str] = field(repr=False)

    async def try_run(self, *args: str, stdin: bytes = b"") -> GitOutput:
        """Run git and return what it said, whatever its exit status."""
        process = await asyncio.create_subprocess_exec(
            "git",
            *_HARDENED,
            *args,
            cwd=self.folder,
            env={**self.environment, **_FIXED},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(_SECONDS):
                out, err = await process.communicate(stdin)
        except TimeoutError:
            raise DeliveryError(f"git {args[0]} did not end within {_SECONDS:.0f} s.") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return GitOutput(process.returncode or 0, out, err.decode(errors="replace").strip())

    async def run(self, *args: str, stdin: bytes = b"") -> bytes:
        """Run git and return its standard output; `DeliveryError` where it fails."""
        output = await self.try_run(*args, stdin=stdin)
        if output.code != 0:
            raise DeliveryError(f"git {args[0]} failed: {output.stderr[-500:]}")
        return output.stdout

    async def line(self, *args: str) -> str:
        """Run git and return the one line that it prints."""
        return (await self.run(*args)).decode(errors="surrogateescape").removesuffix("\n")

    def told(self, **variables: str) -> "HostGit":
        """Return git with more variables set."""
        return replace(self, environment={**self.environment, **variables})


@dataclass(frozen=True, slots=True)
class UserRepository:
    """The user's own repository as the place for a finished patch."""

    git: HostGit

    async def check_branch(self, name: str) -> None:
        """Raise `DeliveryError` unless a branch of that name can be made."""
        if (await self.git.try_run("check-ref-format", "--branch", name)).code != 0:
            raise DeliveryError(
                f"`{name}` is no valid name for a branch.",
                mend="Write one such as `fix/leap-year`.",
            )
        ref = f"refs/heads/{name}"
        if (await self.git.try_run("show-ref", "--verify", "--quiet", ref)).code == 0:
            raise DeliveryError(
                f"There is a branch {name} already.", mend="Choose another name with --branch."
            )

    async def apply(self, patch: Patch) -> None:
        """Apply a patch to the working tree, all of it or nothing.

        `DeliveryError` where it would change a file that has uncommitted changes of the user's,
        or where it does not fit; the working tree is then as it was.
        """
        top = _top(self.git.folder)
        if top is None:
            raise DeliveryError(
                f"{self.git.folder} has no working tree.", mend="Use --branch or --output."
            )
        async with self._private(top) as git:
            await git.run("read-tree", await self.git.line("rev-parse", "HEAD^{tree}"))
            dirty = await _dirty(git, [change.path for change in patch.files])
            if dirty:
                raise DeliveryError(
                    f"Not applied: you have uncommitted changes in {', '.join(sorted(dirty))}.",
                    mend="Commit or stash them and apply the diff, or use --branch.",
                )
            tried = await git.try_run("apply", "--whitespace=nowarn", "-", stdin=patch.diff)
        if tried.code != 0:
            raise DeliveryError(
                f"The patch does not fit the working tree: {tried.stderr[-500:]}",
                mend="Check out the base of the run, or use --branch.",
            )

    async def make_branch(self, name: str, base_commit: str, patch: Patch, message: str) -> str:
        """Make a branch with one commit on the base and return the commit.

        Neither the working tree nor the index is touched.
        """
        await self.check_branch(name)
        async with self._private(_top(self.git.folder) or self.git.folder) as git:
            await git.run("read-tree", base_commit)
            await git.run("apply", "--cached", "--whitespace=nowarn", "-", stdin=patch.diff)
            tree = await git.line("write-tree")
        committer = self.git.told(**await self._identity())
        commit = await committer.run("commit-tree", tree, "-p", base_commit, stdin=message.encode())
        name_of_commit = commit.decode().strip()
        await self.git.run("update-ref", f"refs/heads/{name}", name_of_commit, _ABSENT)
        return name_of_commit

    @asynccontextmanager
    async def _private(self, top: Path) -> AsyncIterator[HostGit]:
        """Give git a directory of our own, over the user's working tree and objects."""
        objects = await self.git.line(
            "rev-parse", "--path-format=absolute", "--git-path", "objects"
        )
        kind = await self.git.line("rev-parse", "--show-object-format")
        with TemporaryDirectory(prefix="turnout-git-") as folder:
            shape = ("--bare", "--template=", f"--object-format={kind}")
            await replace(self.git, folder=Path(folder)).run("init", "--quiet", *shape)
            _forget_attributes(Path(folder))
            yield replace(self.git, folder=top).told(
                GIT_DIR=folder, GIT_WORK_TREE=str(top), GIT_OBJECT_DIRECTORY=objects
            )

    async def _identity(self) -> dict[str, str]:
        """Return who commits, where the user's git does not know."""
        if (await self.git.try_run("config", "user.email")).code == 0:
            return {}
        return {
            f"GIT_{role}_{what}": value
            for role in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", "Turnout"), ("EMAIL", "turnout@localhost"))
        }


def _top(folder: Path) -> Path | None:
    """Return the top of the working tree around a folder; git there applies a patch whole.

    Git is not asked: its answer may come from the repository's configuration, and be any folder.
    """
    here = folder.absolute()
    return next((path for path in (here, *here.parents) if (path / ".git").exists()), None)


def _forget_attributes(git_dir: Path) -> None:
    """Let no file of attributes name a program that git would run."""
    info = git_dir / "info"
    info.mkdir(exist_ok=True)
    (info / "attributes").write_text(_ATTRIBUTES)


async def _dirty(git: HostGit, paths: Sequence[str]) -> frozenset[str]:
    """Return which of these paths differ from git's index or are there without being in it."""
    literal = git.told(GIT_LITERAL_PATHSPECS="1")
    found: set[bytes] = set()
    for start in range(0, len(paths), _PATHS_AT_ONCE):
        some = paths[start : start + _PATHS_AT_ONCE]
        listed = await literal.run("ls-files", "-z", "--modified", "--others", "--", *some)
        found.update(path for path in listed.split(b"\0") if path)
    return frozenset(path.decode(errors="backslashreplace") for path in found)


@dataclass(frozen=True, slots=True)
class OutputFolder:
    """A folder that takes a run's results as files."""

    path: Path

    def check(self, names: Sequence[str]) -> None:
        """Make the folder; `DeliveryError` where it cannot be or holds files of these names."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DeliveryError(f"The output folder cannot be made: {error}.") from error
        there = [name for name in names if (self.path / name).exists()]
        if there:
            raise DeliveryError(
                f"{self.path} holds {', '.join(there)} already.", mend="Name another folder."
            )

    def write(self, files: Mapping[str, bytes]) -> None:
        """Write files by name; `DeliveryError` where it cannot be done."""
        try:
            for name, data in files.items():
                (self.path / name).write_bytes(data)
        except OSError as error:
            raise DeliveryError(f"The output folder cannot be written: {error}.") from error
