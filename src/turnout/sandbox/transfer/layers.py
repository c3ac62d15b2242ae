"""Layers of sandboxes that share no folder with us: workspace and environment as one tar file."""

from pathlib import Path
from secrets import token_hex

from turnout.errors import SandboxError
from turnout.sandbox.base import REPO, VENV, BaseRef, LayerRef, Sandbox
from turnout.sandbox.transfer.folders import keep, send_file
from turnout.sandbox.workspace.folders import private

__all__ = ["LAYERED", "check_layer", "layer_file", "restore", "take"]

LAYERED = (REPO, VENV)
"""What a layer holds; a sandbox on a layer is not sent the base's own."""

_TAKE = f"""
kill -STOP -1
/bin/tar --create --file=- --sparse --directory=/ {REPO[1:]} {VENV[1:]}
code=$?
kill -CONT -1
exit $code
"""
"""Everything else is stopped meanwhile; process 1 and the shell itself are not in reach."""


async def take(
    sandbox: Sandbox, state_dir: Path, base_key: str, below: LayerRef | None
) -> LayerRef:
    """Keep workspace and environment of a sandbox as a layer."""
    key = token_hex(16)
    file = layer_file(state_dir, key)
    private(file.parent)
    size = await keep(sandbox, ("/bin/bash", "-c", _TAKE), file)
    stack = below.stack if below is not None else ()
    return LayerRef(key, base_key, (*stack, key), size)


def check_layer(state_dir: Path, base: BaseRef, layer: LayerRef) -> Path:
    """Return the file of a layer; `SandboxError` where it is not one of this base, or is gone."""
    if layer.base_key != base.key:
        raise SandboxError("The layer lies on another base.")
    file = layer_file(state_dir, layer.key)
    if not file.is_file():
        raise SandboxError("The layer is no longer there.", mend="Take the snapshot again.")
    return file


def layer_file(state_dir: Path, key: str) -> Path:
    """Return where a layer is kept; `SandboxError` for a key that is none."""
    if not key.isalnum():
        raise SandboxError("The layer has no name of ours.")
    return state_dir / "snapshots" / f"{key}.tar"


async def restore(sandbox: Sandbox, file: Path) -> None:
    """Fill the workspace and the environment of a fresh sandbox with a layer."""
    await send_file(sandbox, file, "/")
