"""Commands and their ends as the frames of an agent carry them."""

import math
import os

from turnout.sandbox.base import BASE_ENV, Command, Exit, ExitReason
from turnout.sandbox.inside import wire

__all__ = ["decode_exit", "encode_command"]

_REASONS: tuple[ExitReason, ...] = (
    "exited",
    "timeout",
    "output_limit",
    "cancelled",
    "not_started",
    "oom",
)


_SIGNALS = 65
_ERROR_BYTES = 2000
_MOST = (1 << 63) - 1
"""What a count may be: no more than what keeps records takes."""


def encode_command(command: Command) -> bytes:
    """Return the payload that starts a command; `ValueError` where a field cannot be passed."""
    argv = command.argv or ("/bin/bash", "-c", command.shell or "")
    env = {**BASE_ENV, **command.env}
    flags = "".join(
        letter
        for letter, on in (
            ("b", command.background),
            ("r", command.raw),
            ("i", command.stdin is not None),
        )
        if on
    )
    numbers = (command.timeout, command.head, command.tail, command.kill_after_bytes)
    fields = [*map(str, numbers), flags, command.cwd, str(len(argv)), *argv]
    fields += [f"{name}={value}" for name, value in env.items()]
    if any("\0" in item for item in fields) or any("=" in name or not name for name in env):
        raise ValueError("a command, its folder and its variables hold no NUL byte")
    return b"\0".join(os.fsencode(item) for item in fields)


def decode_exit(payload: bytes) -> Exit | None:
    """Return the end of a command; None where the frame is malformed."""
    if len(payload) < wire.DONE.size:
        return None
    reason, code, number, wall, *counts, cpu, peak = wire.DONE.unpack_from(payload)
    in_range = 0 <= wall < math.inf and 0 <= cpu < math.inf and max(*counts, peak) <= _MOST
    if reason >= len(_REASONS) or not in_range:
        return None
    out, err, out_gone, err_gone = counts
    ran = reason != wire.NOT_STARTED
    return Exit(
        reason=_REASONS[reason],
        code=code if 0 <= code <= 255 else None,
        signal=number if 0 < number < _SIGNALS else None,
        wall_seconds=wall,
        stdout_bytes=out,
        stderr_bytes=err,
        stdout_omitted=out_gone,
        stderr_omitted=err_gone,
        error=payload[wire.DONE.size :][:_ERROR_BYTES].decode(errors="backslashreplace"),
        cpu_seconds=cpu if ran else None,
        peak_memory_bytes=peak if ran else None,
    )
