"""Symbolic links in a patch: made, changed and removed as links, and never followed."""

import posixpath
from typing import Final

from turnout.agent.tools.patch_place import patched
from turnout.agent.tools.patch_text import FilePatch
from turnout.errors import ToolError
from turnout.sandbox.base import REPO, Blob, Command, CommandResult, Sandbox
from turnout.sandbox.patches import names_git

__all__ = ["is_link", "link_after", "read_link", "write_link"]

_MODE: Final = "120000"
_BITS: Final = 0o777
_LONGEST: Final = 4_095
_SECONDS: Final = 30.0


def is_link(patch: FilePatch) -> bool:
    """Whether a patch says of its path that it is a link."""
    return any(mode.endswith(_MODE) for mode in patch.modes)


async def read_link(sandbox: Sandbox, path: str) -> Blob | None:
    """Return where a link leads, as its content; None where there is no link."""
    found = await _run(sandbox, "readlink", "-n", "--", path)
    target = found.stdout
    return Blob(target, len(target), _BITS, "") if found.ok and target else None


async def link_after(sandbox: Sandbox, patch: FilePatch, before: Blob | None) -> bytes | None:
    """Return where a patch makes a link lead; None where it removes it.

    `ToolError` where that is no link of the workspace, or leads out of it.
    """
    if any(not mode.endswith(_MODE) for mode in patch.modes):
        raise ToolError("A patch cannot make a link of a file, or a file of a link.")
    if patch.old is not None and before is None:
        raise ToolError("It is no link.", mend="Leave the mode 120000 out.")
    if patch.old is not None and patch.new is not None and patch.old != patch.new:
        raise ToolError("It is a link, which a patch cannot move.")
    target = patched(before.data if before else b"", patch).data.removesuffix(b"\n")
    if patch.new is None:
        return None
    if not 0 < len(target) <= _LONGEST or b"\n" in target or b"\0" in target:
        raise ToolError("A link leads to one path.", mend="Add one line that is the path.")
    await _check_inside(sandbox, patch.new, target)
    return target


async def write_link(sandbox: Sandbox, path: str, target: bytes) -> None:
    """Make a link, in place of one that is there."""
    folder = posixpath.dirname(path) or "."
    named = target.decode(errors="surrogateescape")
    for argv in (("mkdir", "-p", "--", folder), ("ln", "-sfn", "--", named, path)):
        done = await _run(sandbox, *argv)
        if not done.ok:
            why = done.stderr.decode(errors="backslashreplace").strip()[-400:]
            raise ToolError(f"{path} cannot be written: {why}")


async def _check_inside(sandbox: Sandbox, path: str, target: bytes) -> None:
    """Raise `ToolError` where a link would lie outside of the workspace, or lead there."""
    named = target.decode(errors="surrogateescape")
    folder = posixpath.join(REPO, posixpath.dirname(path))
    places = (folder, posixpath.join(folder, named))
    found = await _run(sandbox, "/usr/bin/realpath", "-mz", "--", *places)
    real = found.stdout.split(b"\0")[:-1]
    if not found.ok or len(real) != len(places):
        raise ToolError("Where the link would lead could not be found out.")
    root = REPO.encode()
    inside = [one == root or one.startswith(root + b"/") for one in real]
    if named.startswith("/") or inside != [True, True]:
        raise ToolError(
            f"A link to `{named}` would leave the repository.",
            mend="Give a path relative to the folder of the link.",
        )
    if any(names_git(one) for one in real):
        raise ToolError("Files of .git are not changed by tools.")


async def _run(sandbox: Sandbox, *argv: str) -> CommandResult:
    return await sandbox.run(Command(argv, timeout=_SECONDS))
