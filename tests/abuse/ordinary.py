"""Running a program of this checkout as a user who owns nothing, where only root could enter it.

As root, in a mount namespace of its own: `python ordinary.py UID FOLDER... -- PROGRAM ARGUMENT...`.
Folders on the way that nobody else may enter are covered by empty ones, in which nothing but the
named folders shows, at the paths that they have.
"""

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["as_ordinary_user", "fresh_uid"]

_MS_BIND_RECURSIVE = 4096 | 16384
_FIRST_UID = 1_500_000_000


def _closed_ancestor(folder: Path) -> Path | None:
    """Return the highest folder above `folder` that other users cannot enter."""
    return next((p for p in reversed(folder.parents) if not p.stat().st_mode & 0o001), None)


def fresh_uid() -> int:
    """Return a uid that nobody has."""
    return _FIRST_UID + os.getpid()


def as_ordinary_user(uid: int, program: Sequence[str], folders: Sequence[Path]) -> list[str] | None:
    """Return the command by which root runs `program` as `uid`; None where the means are missing.

    `folders` are shown to it wherever they lie; what is in them must be readable by others.
    """
    unshare = shutil.which("unshare")
    if unshare is None or shutil.which("setpriv") is None:
        return None
    shown = {Path(sys.base_prefix), Path(sys.prefix), *folders}
    return [
        *(unshare, "--mount", "--propagation", "private", "--"),
        *(sys.executable, "-ISE", __file__, str(uid)),
        *(*sorted(str(path.resolve()) for path in shown), "--", *program),
    ]


def _mount(source: str, target: Path, kind: str | None, flags: int, options: str | None) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    data = None if options is None else options.encode()
    if libc.mount(*texts, ctypes.c_ulong(flags), data) != 0:
        raise OSError(ctypes.get_errno(), f"{target} cannot be mounted")


def _show(folders: Sequence[Path]) -> None:
    """Make every folder reachable for others, at its own path."""
    closed = {folder: _closed_ancestor(folder) for folder in folders}
    held = {folder: os.open(folder, os.O_PATH | os.O_DIRECTORY) for folder in closed}
    for cover in {cover for cover in closed.values() if cover is not None}:
        _mount("tmpfs", cover, "tmpfs", 0, "mode=0755,size=1m")
    for folder, cover in closed.items():
        if cover is not None:
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            _mount(f"/proc/self/fd/{held[folder]}", folder, None, _MS_BIND_RECURSIVE, None)
    for fd in held.values():
        os.close(fd)


def _main(arguments: Sequence[str]) -> None:
    end = arguments.index("--")
    uid = arguments[0]
    _show([Path(folder) for folder in arguments[1:end]])
    become = ["setpriv", "--pdeathsig", "KILL", "--clear-groups"]
    become += ["--reuid", uid, "--regid", uid, "--"]
    sys.exit(subprocess.run([*become, *arguments[end + 1 :]], check=False).returncode)


if __name__ == "__main__":
    _main(sys.argv[1:])
