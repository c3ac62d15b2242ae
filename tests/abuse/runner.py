"""Tries rows of the table in sandboxes of one kind and prints what was seen, one JSON object each.

`python -m tests.abuse.runner KIND STATE OUTSIDE NUMBER...`, a process of its own, so that the same
rows are tried as whatever user it runs as. A sandbox is used for as long as it lives.
"""

import asyncio
import json
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.abuse.kinds import KINDS
from tests.abuse.rows import ROWS
from tests.abuse.table import HERE, OTHER_SECRET, SECRET, Place, Row

from turnout.core.ids import new_run_id
from turnout.errors import SandboxUnavailableError, TurnoutError
from turnout.sandbox.base import BaseRef, BaseSpec, Command, Limits, Sandbox, SandboxDriver
from turnout.testing.repositories import TinyRepository

__all__ = ["LIMITS"]

MIB = 1 << 20
LIMITS = Limits(
    memory_bytes=160 * MIB,
    pids=64,
    cpus=2,
    disk_bytes=48 * MIB,
    inodes=10_000,
    file_bytes=32 * MIB,
    open_files=64,
)
_ROW_SECONDS = 45.0
_OPEN = '[ -e "$OUTSIDE" ] || grep -qsa tests[.]abuse /proc/[0-9]*/cmdline'
"""Whether anything of the host shows to a shell."""
_LOOK = f"if {_OPEN}; then echo open; else echo walled; fi"
_TIDY = (
    f"if {_OPEN}; then echo open; exit; fi; git reset -q --hard; git clean -qffdx; "
    f'rm -rf "${{TMPDIR:?}}"/[!h]*; mkdir {HERE}; echo alive'
)


@dataclass(frozen=True, slots=True)
class _Maker:
    driver: SandboxDriver
    base: BaseRef

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[Sandbox]:
        sandbox = await self.driver.create(new_run_id(), self.base, LIMITS)
        try:
            yield sandbox
        finally:
            await sandbox.close()


def _tell(**fields: object) -> None:
    sys.stdout.write(json.dumps(fields, ensure_ascii=False) + "\n")
    sys.stdout.flush()


async def _said(place: Place, script: str) -> str:
    """Return what a script printed; nothing where the sandbox is gone."""
    try:
        command = Command(shell=script, env=place.variables, timeout=20)
        return (await place.sandbox.run(command)).stdout.decode(errors="replace").strip()
    except TurnoutError:
        return ""


async def _try(row: Row, place: Place) -> str:
    try:
        async with asyncio.timeout(_ROW_SECONDS):
            return await row.attempt(place)
    except (TurnoutError, TimeoutError) as error:
        return f"{type(error).__name__}: {error}"


def _as_text(seen: str) -> str:
    """Return the end of what was seen, with surrogates escaped."""
    return seen[-20_000:].encode(errors="backslashreplace").decode()


def _lay_out(outside: Path, stack: ExitStack) -> dict[str, str]:
    """Put things of the host where rows reach for them; returns how commands find them."""
    home, runs = outside / "home", outside / "runs"
    for path in (outside, home, runs):
        path.mkdir(exist_ok=True)
        path.chmod(0o777)
    for path in (outside / "secret.txt", home / ".netrc"):
        path.write_text(SECRET)
    (runs / "private.txt").write_text(OTHER_SECRET)
    listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    named = stack.enter_context(socket.socket(socket.AF_UNIX))
    named.bind(str(outside / "service.sock"))
    named.listen()
    abstract = outside.parent.name
    unnamed = stack.enter_context(socket.socket(socket.AF_UNIX))
    unnamed.bind(f"\0{abstract}")
    unnamed.listen()
    return {
        "OUTSIDE": str(outside),
        "HOST_HOME": str(home),
        "RUNS": str(runs),
        "PORT": str(listening.getsockname()[1]),
        "ABSTRACT": abstract,
    }


async def _try_rows(place_of: Callable[[Sandbox], Place], maker: _Maker, rows: list[Row]) -> None:
    """Try rows one after another; where nothing hides the host, none that does more than look."""
    while rows:
        async with maker() as sandbox:
            place = place_of(sandbox)
            found = await _said(place, _LOOK)
            if found != "walled" and not all(row.harmless for row in rows):
                sys.exit(f"nothing is tried: the host's folders should be hidden, found {found!r}")
            tidy = _TIDY if found == "walled" else f"mkdir -p {HERE}; echo alive"
            alive = await _said(place, tidy) == "alive"
            if not alive:
                sys.exit("a new sandbox runs no command")
            while alive and rows:
                row = rows.pop(0)
                begin = time.monotonic()
                seen = await _try(row, place)
                alive = await _said(place, tidy) == "alive"
                took = round(time.monotonic() - begin, 2)
                _tell(row=row.number, seen=_as_text(seen), alive=alive, seconds=took)


async def _main(kind: str, state: Path, outside: Path, numbers: list[int]) -> None:
    driver = KINDS[kind](state)
    repository = TinyRepository(outside / "source", {"a.txt": "one\n", "src/m.py": "x = 1\n"})
    with ExitStack() as stack:
        variables = _lay_out(outside, stack)
        async with AsyncExitStack() as opened:
            try:
                spec = BaseSpec(str(repository), repository.head, requirements=())
                maker = _Maker(driver, await driver.prepare(spec))
                other = await opened.enter_async_context(maker())
            except SandboxUnavailableError as error:
                _tell(unavailable=str(error))
                return
            _tell(isolation=other.isolation)
            await other.write("private.txt", OTHER_SECRET.encode())

            def place_of(sandbox: Sandbox) -> Place:
                return Place(sandbox, maker, outside, state, variables)

            await _try_rows(place_of, maker, [ROWS[number] for number in numbers])


if __name__ == "__main__":
    asyncio.run(
        _main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), [int(n) for n in sys.argv[4:]])
    )
