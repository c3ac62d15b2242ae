"""How the rest of the room starts a sandbox that has no base layer behind it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

from turnout.core.ids import RunId
from turnout.sandbox.base import NO_EGRESS, Egress, Limits, Mount, Sandbox

__all__ = [
    "BASE_GIT",
    "BASE_MORE",
    "BASE_TREE",
    "BASE_VENV",
    "BareStarter",
    "WorkspaceKind",
]

BASE_TREE = "/base"
"""Where the tree of the base layer is mounted, read-only."""

BASE_GIT = "/base.git"
"""Where the objects of the base layer are mounted, read-only."""

BASE_MORE = "/base.more"
"""Folder of the folders `0`, `1`, … that lie under the tree, uppermost first; see `Layer.under`."""

BASE_VENV = "/base.venv"
"""Where the environment is shown as it was made, where a run may change its own view of it."""

WorkspaceKind = Literal["empty", "from_base"]
"""`empty`: `/repo` is an empty sized folder. `from_base`: it begins as `/base`, and shows beside it
what the folders in `/base.more` hold and `/base` does not."""


class BareStarter(Protocol):
    """A driver as the base layer, the environment and the collector see it."""

    @property
    def state_dir(self) -> Path:
        """Folder of the service's state; uids of sandboxes may traverse it."""
        ...

    @property
    def python(self) -> str:
        """Path inside every sandbox of its own Python interpreter."""
        ...

    async def start_bare(
        self,
        run_id: RunId,
        mounts: Sequence[Mount],
        limits: Limits,
        *,
        workspace: WorkspaceKind = "empty",
        egress: Egress = NO_EGRESS,
    ) -> Sandbox:
        """Start a sandbox that shows exactly `mounts`; it has no `diff`.

        Inside, everything seems to be owned by the user that commands run as. As root the source
        folder of a writable mount is handed over to the sandbox's uid before it starts
        (the folder itself, not what is in it), so give an empty one. Read-only sources must be
        readable by others. `SandboxUnavailableError` where no sandbox can be started, or none of
        this kind with `egress`.
        """
        ...
