"""The tree of a commit, laid out once by a set-up sandbox."""

import json
from pathlib import Path

from pydantic import Field, ValidationError

from turnout.errors import RepositoryError, SandboxError
from turnout.sandbox.bare import BASE_GIT, BASE_TREE, BareStarter
from turnout.sandbox.base import CommandResult, Mount
from turnout.sandbox.rooms.disk import NO_SPACE, full_disk, within_disk
from turnout.sandbox.rooms.room import inside_program, last_words, opened_room
from turnout.sandbox.workspace.folders import readable, short_hash
from turnout.sandbox.workspace.shelf import Facts, Made, Shelf

__all__ = ["CommitFacts", "prepare_tree"]

_TIMEOUT = 600.0


class CommitFacts(Facts):
    """What the checkout told of the commit."""

    too_large: bool = False
    files: int = 0
    submodules: tuple[str, ...] = ()
    large_files: bool = False
    texts: dict[str, str] = Field(default_factory=dict)
    """Files that declare dependencies, by path."""
    nodes: dict[str, str] = Field(default_factory=dict)
    """Object names of the files that npm looks at, by path."""
    native: str = ""
    """Hash of the names and contents of sources that a build would compile."""
    preparing: str = ""
    """The same of files that a set-up command may go by: manifests, lock files, programs."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is not as one would expect."""
        found = []
        if self.submodules:
            names = ", ".join(self.submodules[:5])
            found.append(f"Submodules are empty in the workspace: {names}.")
        if self.large_files:
            found.append("Files kept by Git LFS are pointers in the workspace, not their contents.")
        return tuple(found)


async def prepare_tree(starter: BareStarter, history: Path, commit: str) -> Made[CommitFacts]:
    """Lay the commit out below `tree`, or find it so; `RepositoryError` where it cannot be."""
    key = short_hash(json.dumps([history.name, inside_program("checkout.py")]))

    async def make(folder: Path) -> CommitFacts:
        work = _check_out(starter, history, readable(folder / "tree"), commit)
        return await within_disk(starter.state_dir, work)

    return await Shelf(starter.state_dir, "trees", CommitFacts).get(key, make)


async def _check_out(starter: BareStarter, history: Path, tree: Path, commit: str) -> CommitFacts:
    mounts = [Mount(str(history), BASE_GIT), Mount(str(tree), BASE_TREE, writable=True)]
    async with opened_room(starter, mounts) as room:
        arguments = (BASE_GIT, BASE_TREE, commit)
        result = await room.run("checkout.py", *arguments, timeout=_TIMEOUT)
    return _checked(result, starter.state_dir)


def _checked(result: CommandResult, state_dir: Path) -> CommitFacts:
    if not result.ok:
        if NO_SPACE in result.stderr.decode(errors="replace"):
            raise full_disk(state_dir)
        raise RepositoryError(
            f"The commit cannot be checked out: {last_words(result).removeprefix('error: ')}.",
            mend="Check the commit with: git fsck.",
        )
    try:
        facts = CommitFacts.model_validate_json(result.stdout)
    except ValidationError as error:
        raise SandboxError("What the checkout told cannot be read.") from error
    if facts.too_large:
        raise RepositoryError(
            "The commit has more files or bytes than a workspace may: 400,000 files, 4 GiB.",
            mend="Split the repository, or remove generated files from it.",
        )
    return facts
