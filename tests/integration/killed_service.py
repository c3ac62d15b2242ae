"""A service that is killed while it works with sandboxes, and what is left of it.

`python -m tests.integration.killed_service STAGE KIND STATE REPOSITORY COMMIT SECONDS...` forks
such a service for each of the times, waits until it is ready and as long as it is told, kills it
and says two seconds later, in a line, which of all processes that came from it are still there;
later where others keep the machine busy. Orphans fall to this process, so that none is overlooked.
"""

import asyncio
import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import IO

from tests.abuse.kinds import KINDS

from turnout.core.ids import RunId
from turnout.sandbox.base import BaseSpec, Command, Limits

__all__ = ["RUN"]

RUN = RunId("run-0000000dead0")
_PR_SET_CHILD_SUBREAPER = 36
_ALLOWED_SECONDS = 2.0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _children() -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(path.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found.append(int(path.parent.name))
    return found


def _reaped() -> bool:
    """Collect every child that ended; True where none is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False


def _forked(work: Coroutine[None, None, None]) -> tuple[int, IO[bytes]]:
    """Do something in a fork; returns its id and what it prints."""
    reader, writer = os.pipe()
    if not (pid := os.fork()):
        os.dup2(writer, 1)
        try:
            asyncio.run(work)
        finally:
            os._exit(1)
    os.close(writer)
    work.close()
    return pid, os.fdopen(reader, "rb")


def _kill_after(delay: float, work: Coroutine[None, None, None]) -> None:
    service, told = _forked(work)
    with told:
        ready = told.readline()
        time.sleep(delay)
        os.kill(service, signal.SIGKILL)
        os.waitpid(service, 0)
    killed = time.monotonic()
    allowed = _ALLOWED_SECONDS * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    while not (gone := _reaped()) and time.monotonic() < killed + allowed:
        time.sleep(0.01)
    left = []
    for pid in _children():
        with suppress(OSError):
            left.append(Path(f"/proc/{pid}/cmdline").read_text(errors="replace"))
            os.kill(pid, signal.SIGKILL)
    _say(json.dumps({"ready": ready.decode().strip(), "gone": gone, "left": left}))


async def _serve(stage: str, kind: str, state: Path, spec: BaseSpec) -> None:
    driver = KINDS[kind](state)
    if stage == "prepare":
        _say("ready")
    base = await driver.prepare(spec)
    if stage == "create":
        _say("ready")
        while True:
            await (await driver.create(RUN, base, Limits())).close()
    sandbox = await driver.create(RUN, base, Limits())
    await sandbox.write("new.txt", bytes(1 << 20))
    if stage == "exec":
        stays = "sleep 987 & setsid env -i setsid sleep 986 & echo up; exec sleep 985"
        async for _ in sandbox.exec(Command(shell=stays, background=True)):
            _say("ready")
    _say("ready")
    while stage == "diff":
        await sandbox.diff()
    while stage == "snapshot":
        await sandbox.snapshot()
    await asyncio.Event().wait()


def _main(stage: str, kind: str, state: str, repository: str, commit: str, *delays: str) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    spec = BaseSpec(repository, commit, requirements=())
    for delay in delays:
        _kill_after(float(delay), _serve(stage, kind, Path(state), spec))


if __name__ == "__main__":
    _main(*sys.argv[1:])
