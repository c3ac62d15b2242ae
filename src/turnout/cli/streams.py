"""Standard streams that hold: each is there, and a reader who leaves stops no work."""

import io
import os
import sys
from contextlib import suppress
from typing import Final

__all__ = ["drop_unwritable", "prepare_streams"]

_STDERR: Final = 2


class _Courtesy(io.TextIOWrapper):
    """Standard error: nobody has to listen for the work to go on."""

    def write(self, text: str, /) -> int:
        """Write, or do without from now on."""
        try:
            return super().write(text)
        except OSError:
            _to_nowhere(self.fileno())
            return len(text)

    def flush(self) -> None:
        """Flush, or do without from now on."""
        try:
            super().flush()
        except OSError:
            _to_nowhere(self.fileno())


def prepare_streams() -> None:
    """Open the standard streams that the process was started without, and keep stderr harmless.

    A file that is opened where a stream is missing would be written to in its place.
    """
    while (spare := os.open(os.devnull, os.O_RDWR)) <= _STDERR:
        os.set_inheritable(spare, True)
    os.close(spare)
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = _Courtesy(
        os.fdopen(_STDERR, "wb", closefd=False),
        encoding=sys.stderr.encoding if sys.stderr else "utf-8",
        errors="backslashreplace",
        line_buffering=True,
    )


def drop_unwritable() -> None:
    """Let go of what standard output does not take, so that the end of the process is quiet."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError):
            _to_nowhere(sys.stdout.fileno())


def _to_nowhere(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)
