"""Processes that a bench starts: none of them outlives it, however it ends."""

import multiprocessing
import os
import shutil
import signal
import threading
from collections.abc import Sequence
from typing import Literal

__all__ = ["bound", "end_on_term", "end_with_parent"]


def bound(command: Sequence[str], how: Literal["TERM", "KILL"] = "TERM") -> list[str]:
    """Return a command whose process gets a signal once the bench is gone, though it was killed.

    Call it from the main thread: the kernel sends the signal when the thread that started it ends.
    """
    setpriv = shutil.which("setpriv")
    return [*([setpriv, "--pdeathsig", how, "--"] if setpriv else []), *command]


def end_with_parent() -> None:
    """End this process, which `multiprocessing` has started, once its parent is gone."""
    parent = multiprocessing.parent_process()
    if parent is None:
        raise RuntimeError("only a process that multiprocessing has started has such a parent")

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, name="end with parent", daemon=True).start()


def end_on_term() -> None:
    """Have SIGTERM end the bench as Ctrl-C does: what it has opened is closed."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
