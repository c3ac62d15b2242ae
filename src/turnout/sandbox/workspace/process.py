"""Programs of the host that the room runs: bounded in time and in what they print."""

import asyncio
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Finished", "run_program"]

_DRAIN = 1.0


@dataclass(frozen=True, slots=True)
class Finished:
    """A program that came to its end, or was ended."""

    code: int | None
    """Exit status; None where the time ran out."""
    stdout: bytes
    """Cut at the cap."""
    stderr: str
    """Cut at the cap; bytes that are no UTF-8 appear as backslash escapes."""

    @property
    def ok(self) -> bool:
        """True where it exited with status 0."""
        return self.code == 0


async def run_program(
    argv: Sequence[str],
    *,
    timeout: float,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    cap: int = 4 << 20,
) -> Finished:
    """Run a program with no input and no terminal, and end its whole group after `timeout`.

    `environment` None: that of the service. Output past `cap` bytes is read and dropped. It ends
    with the service, even where that is killed.
    """
    loop = asyncio.get_running_loop()
    transport, listener = await loop.subprocess_exec(
        lambda: _Listener(cap),
        *_bound_to_us(),
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        cwd=cwd or "/",
        env=environment,
        start_new_session=True,
    )
    code: int | None = None
    try:
        async with asyncio.timeout(timeout):
            await listener.exited.wait()
        code = transport.get_returncode()
    except TimeoutError:
        pass
    finally:
        _end_group(transport.get_pid())
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN):
                await listener.exited.wait()
                await listener.silent.wait()
        transport.close()
    stdout, stderr = listener.kept
    return Finished(code, bytes(stdout), stderr.decode(errors="backslashreplace"))


class _Listener(asyncio.SubprocessProtocol):
    """Keeps what a program prints.

    Its end is that of the process, not of its output: a grandchild in a session of its own may
    hold the pipes for as long as it likes.
    """

    def __init__(self, cap: int) -> None:
        self.kept = (bytearray(), bytearray())
        self.exited = asyncio.Event()
        self.silent = asyncio.Event()
        self._cap = cap
        self._open = {1, 2}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        kept = self.kept[fd - 1]
        kept += data[: self._cap - len(kept)]

    def pipe_connection_lost(self, fd: int, *_: object) -> None:
        self._open.discard(fd)
        if not self._open:
            self.silent.set()

    def process_exited(self) -> None:
        self.exited.set()


def _bound_to_us() -> list[str]:
    """Return what makes the kernel end a program when we end; nothing where that is missing."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []


def _end_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
