"""Hearing what our pytest plugin tells inside a sandbox, by a process that the tests do not own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files

from turnout.sandbox.base import BASE_ENV, VENV, Command, Output, Sandbox

__all__ = ["FOLDER", "Heard", "hearing"]

FOLDER = f"{BASE_ENV['TMPDIR']}/turnout-report"
"""Where the plugin finds who hears it, inside."""

_PATIENCE = 30.0
_MOST_BYTES = 17 << 20
# The system's own interpreter comes first: a run may have changed that of its environment.
_LISTEN = """
rm -rf -- "$1" && mkdir -m 700 -- "$1" && cat >"$1/chosen" || exit
for python in /usr/bin/python3 /usr/local/bin/python3 "$4"; do
    [ -x "$python" ] && exec "$python" -ISE -c "$2" "$1" "$3"
done
"""
_STOP = 'kill -TERM "$2"; rm -rf -- "$1"'


class Heard:
    """What was told so far."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.listening = asyncio.Event()
        """Set as soon as somebody listens, or nobody ever will."""

    def add(self, data: bytes) -> None:
        """Take a piece of what the listener prints."""
        self._parts.append(data)
        if b"\n" in data:
            self.listening.set()

    @property
    def process(self) -> str:
        """The listener's number inside; empty where there is none."""
        number = b"".join(self._parts).partition(b"\n")[0]
        return number.decode() if number.isdigit() else ""

    @property
    def lines(self) -> list[bytes]:
        """Each line that was told."""
        return b"".join(self._parts).splitlines()[1:]


@asynccontextmanager
async def hearing(
    sandbox: Sandbox, chosen: bytes, *, sessions: int, timeout: float
) -> AsyncIterator[Heard]:
    """Listen to so many sessions of pytest while the context is open; it is all heard afterwards.

    `chosen` is what the plugin reads of the tests that shall run. `timeout`: seconds, of what is
    done meanwhile.
    """
    heard = Heard()
    program = files("turnout.sandbox.inside").joinpath("reports/listen.py").read_text("utf-8")
    words = (FOLDER, program, str(sessions), f"{VENV}/bin/python")
    command = Command(
        ("/bin/sh", "-c", _LISTEN, "sh", *words),
        stdin=chosen,
        timeout=timeout + 2 * _PATIENCE,
        head=_MOST_BYTES,
    )
    task = asyncio.create_task(_listen(sandbox, command, heard))
    try:
        await heard.listening.wait()
        yield heard
        stop = ("/bin/sh", "-c", _STOP, "sh", FOLDER, heard.process)
        await sandbox.run(Command(stop, timeout=_PATIENCE))
        async with asyncio.timeout(_PATIENCE):
            await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _listen(sandbox: Sandbox, command: Command, heard: Heard) -> None:
    try:
        async for item in sandbox.exec(command):
            if isinstance(item, Output) and item.stream == "stdout":
                heard.add(item.data)
    finally:
        heard.listening.set()
