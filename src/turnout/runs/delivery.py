"""Puts a finished patch where the user wants it: the working tree, a branch or a folder.

This is the one place where git runs on the user's own repository with what a run made. The patch
goes in on standard input, hooks and file-system monitors of the repository stay off, and nothing
of the user's own work is ever overwritten.
"""

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
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
    "--no-pager",
)

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

    async def try_run(
        self, *args: str, stdin: bytes = b"", extra: Mapping[str, str] | None = None
    ) -> GitOutput:
        """Run git and return what it said, whatever its exit status."""
        process = await asyncio.create_subprocess_exec(
            "git",
            *_HARDENED,
            *args,
            cwd=self.folder,
            env={**self.environment, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", **(extra or {})},
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

    async def run(
        self, *args: str, stdin: bytes = b"", extra: Mapping[str, str] | None = None
    ) -> bytes:
        """Run git and return its standard output; `DeliveryError` where it fails."""
        output = await self.try_run(*args, stdin=stdin, extra=extra)
        if output.code != 0:
            raise DeliveryError(f"git {args[0]} failed: {output.stderr[-500:]}")
        return output.stdout


@dataclass(frozen=True, slots=True)
class UserRepository:
    """The user's own repository as the place for a finished patch."""

    git: HostGit

    async def check_branch(self, name: str) -> None:
        """Raise `DeliveryError` unless a branch of that name can be made."""
        if (await self.git.try_run("check-ref-format", "--branch", name)).code != 0:
            raise DeliveryError(f"{name!r} is no valid name for a branch.")
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
        git = await self._at_top()
        dirty = await _dirty(git)
        overlap = sorted(dirty & {change.path for change in patch.files})
        if overlap:
            raise DeliveryError(
                f"Not applied: you have uncommitted changes in {', '.join(overlap)}.",
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
        git = await self._at_top()
        git_dir = (await git.run("rev-parse", "--absolute-git-dir")).decode().rstrip("\n")
        index = Path(git_dir) / f"turnout-index-{secrets.token_hex(6)}"
        extra = {"GIT_INDEX_FILE": str(index), **await self._identity()}
        try:
            await git.run("read-tree", base_commit, extra=extra)
            apply = ("apply", "--cached", "--whitespace=nowarn", "-")
            await git.run(*apply, stdin=patch.diff, extra=extra)
            tree = (await git.run("write-tree", extra=extra)).decode().strip()
        finally:
            index.unlink(missing_ok=True)
            index.with_name(f"{index.name}.lock").unlink(missing_ok=True)
        commit = await git.run(
            "commit-tree", tree, "-p", base_commit, stdin=message.encode(), extra=extra
        )
        name_of_commit = commit.decode().strip()
        await git.run("update-ref", f"refs/heads/{name}", name_of_commit, _ABSENT)
        return name_of_commit

    async def _at_top(self) -> HostGit:
        """Return git at the top of the working tree: elsewhere it applies only a part."""
        top = await self.git.try_run("rev-parse", "--show-toplevel")
        if top.code != 0:
            return self.git
        return HostGit(Path(top.stdout.decode().rstrip("\n")), self.git.environment)

    async def _identity(self) -> dict[str, str]:
        """Return who commits, where the user's git does not know."""
        if (await self.git.try_run("config", "user.email")).code == 0:
            return {}
        return {
            f"GIT_{role}_{what}": value
            for role in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", "Turnout"), ("EMAIL", "turnout@localhost"))
        }


async def _dirty(git: HostGit) -> frozenset[str]:
    """Return every path with uncommitted changes, both names of a rename included."""
    status = await git.run("status", "--porcelain=v1", "-z", "--untracked-files=all")
    fields = iter(status.split(b"\0"))
    paths = set()
    for entry in fields:
        if not entry:
            continue
        paths.add(entry[3:])
        if entry[:1] in b"RC" and (old := next(fields, b"")):
            paths.add(old)
    return frozenset(path.decode(errors="backslashreplace") for path in paths)


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
