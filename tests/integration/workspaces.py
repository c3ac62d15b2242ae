"""Workspaces on small repositories, behind real walls."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from turnout.core.ids import new_run_id
from turnout.core.runs import Patch
from turnout.sandbox.base import BaseSpec, Command, Limits, Sandbox
from turnout.sandbox.bubblewrap import BubblewrapDriver
from turnout.testing.repositories import TinyRepository

__all__ = ["opened", "same_tree", "shell"]


@asynccontextmanager
async def opened(
    driver: BubblewrapDriver, repository: TinyRepository, *, base: str | None = None
) -> AsyncIterator[Sandbox]:
    """Open a workspace on a repository's commit, with pytest alone in `/venv`."""
    spec = BaseSpec(str(repository), base or repository.head, requirements=())
    sandbox = await driver.create(new_run_id(), await driver.prepare(spec), Limits())
    try:
        yield sandbox
    finally:
        await sandbox.close()


async def shell(sandbox: Sandbox, script: str, *, timeout: float = 60) -> str:
    """Run a script that must succeed and return what it printed."""
    result = await sandbox.run(Command((), f"set -e\n{script}", timeout=timeout))
    assert result.ok, (result.stderr, result.exit)
    return result.stdout.decode(errors="surrogateescape").rstrip("\n")


def same_tree(repository: TinyRepository, commit: str, patch: Patch) -> str:
    """Apply a patch to a fresh clone at a commit and return the id of the tree that it makes."""
    clone = TinyRepository(repository.path.with_name(f"{repository.path.name}-clone"))
    clone.git("fetch", "--quiet", str(repository), commit)
    clone.git("reset", "--quiet", "--hard", commit)
    (clone.path / ".git" / "patch").write_bytes(patch.diff)
    clone.git("apply", "--index", "--whitespace=nowarn", ".git/patch")
    return clone.git("write-tree")
