"""Signs of use, which keep what is shared from being pruned."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from turnout.sandbox.workspace.folders import private

__all__ = ["give_up", "touched"]


def touched(state_dir: Path, path: Path) -> bool:
    """Note that something of the state is used from now on; False where it is gone.

    Nobody gives up what was touched before he looked.
    """
    with _holding(state_dir, fcntl.LOCK_SH):
        try:
            os.utime(path)
        except FileNotFoundError:
            return False
    return True


def give_up(state_dir: Path, path: Path, target: Path, *, unused_since: float) -> bool:
    """Move something away unless it was used meanwhile or is gone; whether that was done."""
    with _holding(state_dir, fcntl.LOCK_EX):
        try:
            if path.stat().st_mtime > unused_since:
                return False
            path.rename(target)
        except FileNotFoundError:
            return False
    return True


@contextmanager
def _holding(state_dir: Path, how: int) -> Iterator[None]:
    """Hold the lock between those who use and those who give up, for a moment."""
    lock = private(state_dir / "locks") / "use"
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, how)
        yield
    finally:
        os.close(descriptor)
