"""Parents of fixes as commits without a history, so that trying hundreds copies no history."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from turnout.errors import RepositoryError
from turnout.evals.instances.clone import Clone
from turnout.sandbox.workspace.git import git_here, last_line

__all__ = ["Parents"]

_TIMEOUT: Final = 60.0
_COMMIT: Final = """\
tree {tree}
author Turnout <turnout@localhost> 1704067200 +0000
committer Turnout <turnout@localhost> 1704067200 +0000

base
"""


class Parents:
    """A bare repository of ours that borrows the objects of a clone.

    It is made of objects alone: nothing is checked out, and the clone is not written to.
    """

    def __init__(self, folder: Path, clone: Clone) -> None:
        self._folder = folder
        self._clone = clone

    @property
    def repository(self) -> str:
        """Where the commits are."""
        return str(self._folder)

    async def begin(self) -> None:
        """Make the repository, unless it is there."""
        if not (self._folder / "HEAD").exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            kind = await self._clone.object_format()
            options = ["--quiet", "--bare", "--template=", f"--object-format={kind}"]
            await self._git("init", *options, "--initial-branch=none")
        objects = await self._clone.objects()
        borrowed = self._folder / "objects" / "info" / "alternates"
        borrowed.parent.mkdir(exist_ok=True)
        borrowed.write_text(f"{objects}\n")

    async def alone(self, commit: str) -> str:
        """Return a commit with the tree of another and no parent; the same for the same tree."""
        tree = await self._git("rev-parse", "--verify", f"{commit}^{{tree}}")
        with TemporaryDirectory(prefix="turnout-parent-") as folder:
            text = Path(folder) / "commit"
            text.write_text(_COMMIT.format(tree=tree))
            made = await self._git("hash-object", "-w", "-t", "commit", "--", str(text))
        await self._git("update-ref", f"refs/heads/{made}", made)
        return made

    async def _git(self, *arguments: str) -> str:
        git = ["--git-dir", str(self._folder), *arguments]
        done = await git_here(git, timeout=_TIMEOUT)
        if not done.ok:
            said = last_line(done.stderr)
            raise RepositoryError(f"git {arguments[0]} failed on the parent of a fix: {said}")
        return done.stdout.decode().strip()
