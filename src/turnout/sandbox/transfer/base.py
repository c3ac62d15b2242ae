"""What a sandbox begins with, sent to one that shares no folder with us."""

from collections.abc import Sequence
from pathlib import Path

from turnout.sandbox.bare import BASE_MORE, BASE_TREE, WorkspaceKind
from turnout.sandbox.base import REPO, Mount, Sandbox
from turnout.sandbox.transfer.folders import send

__all__ = ["lay_out", "targets"]


def targets(mounts: Sequence[Mount], workspace: WorkspaceKind) -> tuple[tuple[Path, str], ...]:
    """Return the folders to be sent and where to, in this order.

    A workspace that begins as the base is unpacked where it will be used; it is not sent twice.
    """
    sent = [(Path(mount.source), mount.target) for mount in mounts]
    if workspace == "empty":
        return tuple(sent)
    beneath = [(folder, REPO) for folder, target in reversed(sent) if _is_more(target)]
    tree = [(folder, REPO) for folder, target in sent if target == BASE_TREE]
    others = [one for one in sent if one[1] != BASE_TREE and not _is_more(one[1])]
    return (*beneath, *tree, *others)


async def lay_out(sandbox: Sandbox, sent: Sequence[tuple[Path, str]]) -> None:
    """Send folders, one after the other."""
    for folder, target in sent:
        await send(sandbox, folder, target)


def _is_more(target: str) -> bool:
    return target.startswith(f"{BASE_MORE}/")
