"""Files of a workspace that declare what it needs, as a run has left them."""

from collections.abc import Iterable

from turnout.errors import ToolError
from turnout.sandbox.base import Sandbox
from turnout.sandbox.inside.checkout import DECLARING, MOST_LOCK, NODE

__all__ = ["changed_manifests", "may_declare"]

_MOST = 100


def may_declare(paths: Iterable[str]) -> bool:
    """Whether a file of one of these paths may declare dependencies."""
    return any(map(_declares, paths))


async def changed_manifests(sandbox: Sandbox, paths: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return path and text of those files that declare dependencies, for `BaseSpec.manifests`.

    One that was removed, or is no regular file any more, has an empty text; bytes that are no
    UTF-8 are replaced.
    """
    found = []
    for path in sorted(set(filter(_declares, paths)))[:_MOST]:
        try:
            blob = await sandbox.read(path, limit=MOST_LOCK)
        except ToolError:
            found.append((path, ""))
        else:
            found.append((path, blob.data.decode(errors="replace")))
    return tuple(found)


def _declares(path: str) -> bool:
    return bool(DECLARING.fullmatch(path) or NODE.fullmatch(path))
