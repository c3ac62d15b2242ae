"""What a repository says to agents: AGENTS.md and CLAUDE.md, as data."""

import asyncio
import posixpath
from collections.abc import Sequence
from typing import Final

from turnout.errors import ToolError
from turnout.sandbox.base import Sandbox

__all__ = ["read_guidance"]

_NAMES: Final = ("AGENTS.md", "CLAUDE.md")
"""Where a folder has both the first counts; often one is a link to the other."""

_MOST_FOLDERS: Final = 20
_LONGEST: Final = 4_000
"""Characters of one file."""

_MOST: Final = 12_000
"""Characters of all of them."""


async def read_guidance(sandbox: Sandbox) -> str:
    """Return what the repository's files for agents say, each for its folder; empty without any.

    The root's comes first. For a file the nearest one counts. All of it is bounded, and what is
    cut says so.
    """
    parts: list[str] = []
    told: set[str] = set()
    room = _MOST
    for folder, path in await _files(sandbox):
        try:
            blob = await sandbox.read(path, limit=4 * _LONGEST)
        except ToolError:
            continue
        text = blob.data.decode("utf-8-sig", errors="replace").replace("\0", "").strip()
        # A link to another folder's file says nothing new.
        if not text or text in told:
            continue
        told.add(text)
        kept = text[: min(_LONGEST, room)]
        if len(kept) < len(text) or len(blob.data) < blob.size:
            kept += f"\n[cut; {path} has {blob.size} bytes]"
        where = f"in {folder}/" if folder else "everywhere, where no nearer one counts"
        parts.append(f"{path}, counts {where}:\n{kept}")
        room -= len(kept)
        if room <= 0:
            break
    return "\n\n".join(parts)


async def _files(sandbox: Sandbox) -> list[tuple[str, str]]:
    """Return folders that have guidance, with its path, the root first."""
    chosen: dict[str, str] = {}
    for paths in await asyncio.gather(*(_named(sandbox, name) for name in _NAMES)):
        for path in paths:
            chosen.setdefault(posixpath.dirname(path), path)
    return sorted(chosen.items(), key=lambda item: (item[0].count("/"), item[0]))[:_MOST_FOLDERS]


async def _named(sandbox: Sandbox, name: str) -> Sequence[str]:
    """Return the files of a name; that of the root is among them, however many there are."""
    try:
        listing = await sandbox.list(f"**/{name}", limit=_MOST_FOLDERS)
    except ToolError:
        return ()
    if len(listing.paths) == listing.total:
        return listing.paths
    try:
        await sandbox.read(name, limit=1)
    except ToolError:
        return listing.paths
    return (name, *listing.paths)
