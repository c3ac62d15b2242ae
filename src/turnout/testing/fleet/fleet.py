"""Processes of a service on one database, started, asked to end and killed."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from turnout.settings import Settings, load_settings
from turnout.store.database import open_database
from turnout.testing.fleet.counting import Counting
from turnout.testing.fleet.desk import Desk
from turnout.testing.fleet.process import SOCKET, gateway, working
from turnout.testing.model_server import ScriptedModelServer
from turnout.testing.recorded import RecordedRequest
from turnout.testing.repositories import TinyRepository
from turnout.testing.turns import Turn
from turnout.wiring.state import DATABASE

__all__ = ["Fleet", "Process", "Role", "open_fleet"]

Role = Literal["all", "gateway", "work"]

_START: Final = 60.0
"""Seconds that a process may take to be ready, on a busy machine."""
_END: Final = 60.0


@dataclass(frozen=True, slots=True)
class Process:
    """One process of the service."""

    role: Role
    process: asyncio.subprocess.Process

    @property
    def pid(self) -> int:
        """Of the operating system."""
        return self.process.pid

    async def kill(self) -> None:
        """Kill it without warning."""
        self.process.send_signal(signal.SIGKILL)
        await asyncio.wait_for(self.process.wait(), _END)

    async def end(self) -> None:
        """Ask it to end, and wait until it has; `TimeoutError` where it does not."""
        self.process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(self.process.wait(), _END)


@dataclass(slots=True)
class Fleet:
    """Processes of a service; those of one `home` share its sandboxes and checkpoints."""

    home: Path
    model: str
    """Base URL of the model server."""
    more: Mapping[str, str] = field(default_factory=dict)
    """Further variables of the environment."""
    settings: str = ""
    """Further tables of the configuration file."""
    workers: int = 3
    """Runs that a process works on at once."""
    running: list[Process] = field(default_factory=list)

    def prepare(self, home: Path | None = None) -> None:
        """Write the settings and the repository into a state folder, its own where none is said."""
        home = home or self.home
        home.mkdir(parents=True, exist_ok=True)
        home.chmod(0o711)
        tiny = TinyRepository(home / "tiny", {"a.txt": "a\n"})
        (home / "turnout.toml").write_text(
            f"[service]\nworkers = {self.workers}\n"
            f"[service.repositories]\ntiny = {json.dumps(str(tiny))}\n"
            f"[agent]\nmax_steps = 500\n{self.settings}"
        )

    def environment(self, home: Path) -> Mapping[str, str]:
        """Return what a process on a state folder is set up by."""
        return {
            "PATH": os.defpath,
            "PYTHONPATH": os.pathsep.join(sys.path),
            **self.more,
            "TURNOUT_HOME": str(home),
            "LLM_BASE_URL": self.model,
            "LLM_API_KEY": "sesame",
            "LLM_MODEL": "m",
        }

    @asynccontextmanager
    async def gateway(self) -> AsyncIterator[None]:
        """Serve the gateway from this process, which nobody kills."""
        async with gateway(self._settings(), self.home / SOCKET):
            yield

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Work on runs in this process."""
        async with working(self._settings(), self.home / SOCKET):
            yield

    async def start(self, role: Role, home: Path | None = None) -> Process:
        """Start a process and wait until it is ready; `TimeoutError` where it is not in time.

        One that works on another state folder uses the gateway of the first.
        """
        home = home or self.home
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "turnout.testing.fleet.process",
            role,
            str(home),
            str(self.home / SOCKET),
            env=self.environment(home),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        started = Process(role, process)
        self.running.append(started)
        async with asyncio.timeout(_START):
            line = b"" if process.stdout is None else await process.stdout.readline()
        if line != b"ready\n":
            raise RuntimeError(f"A process of the service said {line!r} and did not start.")
        return started

    async def close(self) -> None:
        """Kill what is still running."""
        for each in self.running:
            if each.process.returncode is None:
                await each.kill()

    def _settings(self) -> Settings:
        return load_settings(
            config=self.home / "turnout.toml", environment=dict(self.environment(self.home))
        )


@asynccontextmanager
async def open_fleet(
    folder: Path, model: Counting, where: str | None = None, *, settings: str = "", workers: int = 3
) -> AsyncIterator[tuple[Fleet, Desk]]:
    """Prepare a service on a database of PostgreSQL, or of its own; nothing of it runs yet.

    What is still running at the end is killed; `RuntimeError` where the model was then sent a
    conversation whose calls and results do not match.
    """

    def script(request: RecordedRequest) -> Turn:
        # A long test would keep every conversation once for each of its steps.
        server.requests.clear()
        return model(request)

    server = ScriptedModelServer(script, models=["m"])
    async with server:
        more = {} if where is None else {"TURNOUT_DATABASE": where}
        fleet = Fleet(folder, server.base_url, more, settings, workers)
        fleet.prepare()
        async with open_database(where or folder / DATABASE) as database:
            try:
                yield fleet, Desk(database)
            finally:
                await fleet.close()
    if server.history_faults:
        raise RuntimeError(f"A conversation was wrong: {server.history_faults[0]}")
