"""Files, sockets and a process of this machine that nothing in a sandbox may reach."""

import asyncio
import secrets
import socket
import stat
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from turnout.core.events import Event, encode_event

__all__ = ["Canaries"]

_SLEEPER: Final = "import sys; sys.stdin.read()"


class Canaries:
    """Open to everybody on this machine; only walls keep a sandbox from them.

    A folder with a secret that is in no script, sockets by address, by path and by name, and a
    process. Used inside `async with`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._secret = secrets.token_hex(16)
        self._name = f"canary-{secrets.token_hex(6)}"
        self._mark = Path(tempfile.gettempdir(), self._name)
        self._visits: list[str] = []
        self._servers: list[asyncio.Server] = []
        self._port = 0
        self._process: asyncio.subprocess.Process | None = None

    @property
    def places(self) -> Mapping[str, str]:
        """Where they are: `folder` (with `secret` and `door`), `mark`, `port`, `name`, `pid`."""
        pid = self._process.pid if self._process else 0
        return {
            "folder": str(self._folder),
            "mark": str(self._mark),
            "port": str(self._port),
            "name": self._name,
            "pid": str(pid),
        }

    async def __aenter__(self) -> Self:
        self._folder.mkdir()
        self._folder.chmod(0o777)
        file = self._folder / "secret"
        file.write_text(self._secret)
        file.chmod(0o666)
        by_address = await asyncio.start_server(self._visitor("address"), "127.0.0.1", 0)
        self._port = by_address.sockets[0].getsockname()[1]
        path = str(self._folder / "door")
        by_path = await asyncio.start_unix_server(self._visitor("path"), path)
        (self._folder / "door").chmod(0o777)
        named = socket.socket(socket.AF_UNIX)
        named.bind(f"\0{self._name}")
        by_name = await asyncio.start_unix_server(self._visitor("name"), sock=named)
        self._servers += [by_address, by_path, by_name]
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-ISc", _SLEEPER, stdin=asyncio.subprocess.PIPE
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for server in self._servers:
            server.close()
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    def touched(self, events: Iterable[Event] = ()) -> tuple[str, ...]:
        """Return what was reached so far; empty where the walls held.

        `events`: of runs that may have heard the secret.
        """
        found = [f"a socket by {how}" for how in self._visits]
        if {path.name for path in self._folder.iterdir()} != {"door", "secret"}:
            found.append("the folder")
        elif self._is_changed(self._folder / "secret"):
            found.append("the file")
        if self._mark.exists():
            found.append("a file that was made outside")
        if self._process is None or self._process.returncode is not None:
            found.append("the process")
        if any(self._secret in encode_event(event) for event in events):
            found.append("the secret")
        return tuple(found)

    def _is_changed(self, file: Path) -> bool:
        return file.read_text() != self._secret or stat.S_IMODE(file.stat().st_mode) != 0o666

    def _visitor(self, how: str) -> "_Visitor":
        return _Visitor(self._visits, how)


class _Visitor:
    """Notes who connects, and says the bare minimum."""

    def __init__(self, visits: list[str], how: str) -> None:
        self._visits = visits
        self._how = how

    def __call__(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._visits.append(self._how)
        writer.close()
