"""A service whose processes are killed, and a model that notices what was done twice.

`python -m tests.integration.durable_service ROLE HOME` is one of its processes, set up by the
environment: `all` serves the gateway and works, `work` uses the gateway behind a socket in HOME.
"""

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from turnout.agent.client import HttpModelClient
from turnout.core.clock import SystemClock
from turnout.core.events import Entry, ModelCallDone, PatchMade, ToolCallDone, ToolCallIntended
from turnout.core.json import as_object, as_text
from turnout.core.service.orders import Order
from turnout.core.tasks import Task
from turnout.gateway.access import open_access
from turnout.gateway.server import serve
from turnout.runs.durable.engine import Pace
from turnout.runs.durable.ports import ModelsFor
from turnout.runs.ports import ModelAccess
from turnout.settings import Settings, load_settings
from turnout.store.database import open_database
from turnout.testing.model_server import Call, RecordedRequest, Turn
from turnout.testing.repositories import TinyRepository
from turnout.wiring.durable import open_durable
from turnout.wiring.gateway import app_of, ground_of, site_of
from turnout.wiring.state import database_of

__all__ = ["Counting", "Fleet", "Process", "order", "repeated", "written"]

_SOCKET: Final = "gateway.sock"
_PACE: Final = Pace(beat=0.3, stale=1.5, look=0.3, grace=5.0)


def order(steps: int) -> Order:
    """Return the order of a run of so many writing steps."""
    task = Task(f"Count to {steps}.", "tiny", surface="shell", requirements=())
    return Order(task, "red", "key")


class Counting:
    """A model that writes one number a step into a file, and looks what has become of each."""

    def __init__(self, delay: float = 0.0) -> None:
        self.asked: Counter[str] = Counter()
        """Requests by idempotency key."""
        self._delay = delay

    def __call__(self, request: RecordedRequest) -> Turn:
        """Answer a request of the loop, or of who describes the change."""
        self.asked[request.headers.get("idempotency-key", "")] += 1
        if not request.tool_names:
            return Turn("It counts.", delay=self._delay)
        goal = next(
            int(word.rstrip("."))
            for message in request.messages
            for word in as_text(message.get("content")).split("Count to ")[1:2]
            for word in word.split()[:1]
        )
        done = sum(_went_well(message) for message in request.messages)
        if done >= goal:
            return Turn(
                calls=(Call("finish", {"summary": "done"}, id=f"c{len(request.messages)}"),)
            )
        call = Call("run", {"command": f"echo {done + 1} >> log.txt"}, f"c{len(request.messages)}")
        return Turn(calls=(call,), delay=self._delay)


def _went_well(message: object) -> bool:
    fields = as_object(message)
    return fields.get("role") == "tool" and as_text(fields.get("content")).startswith("exit 0")


def written(entries: Sequence[Entry]) -> list[str]:
    """Return the lines that the patch of a run adds."""
    (patch,) = (e.event.patch for e in entries if isinstance(e.event, PatchMade))
    lines = patch.diff.decode().splitlines()
    return [line[1:] for line in lines if line.startswith("+") and not line.startswith("+++")]


def repeated(entries: Sequence[Entry]) -> list[str]:
    """Return what a record holds twice: answers of a key, results and intents of a call."""
    seen: Counter[str] = Counter()
    for entry in entries:
        match entry.event:
            case ModelCallDone(idempotency_key=key):
                seen[f"answer {key}"] += 1
            case ToolCallIntended(call=call):
                seen[f"intent {call.id}"] += 1
            case ToolCallDone(result=result):
                seen[f"result {result.call_id}"] += 1
            case _:
                pass
    return [what for what, count in seen.items() if count > 1]


@dataclass(frozen=True, slots=True)
class Process:
    """One process of the service."""

    role: str
    process: asyncio.subprocess.Process

    async def kill(self) -> None:
        """Kill it without warning."""
        self.process.send_signal(signal.SIGKILL)
        await self.process.wait()

    async def end(self) -> None:
        """Ask it to end, and wait until it has."""
        self.process.send_signal(signal.SIGTERM)
        await self.process.wait()


@dataclass(slots=True)
class Fleet:
    """Processes of a service on one state folder."""

    home: Path
    model: str
    """Base URL of the model server."""
    more: Mapping[str, str] = field(default_factory=dict)
    """Further variables of the environment."""
    running: list[Process] = field(default_factory=list)

    def prepare(self) -> None:
        """Write the settings and the repository."""
        self.home.mkdir(parents=True, exist_ok=True)
        self.home.chmod(0o711)
        tiny = TinyRepository(self.home / "tiny", {"a.txt": "a\n"})
        (self.home / "turnout.toml").write_text(
            f"[service]\nworkers = 3\n[service.repositories]\ntiny = {json.dumps(str(tiny))}\n"
            "[agent]\nmax_steps = 200\n"
        )

    @property
    def environment(self) -> Mapping[str, str]:
        """What every process of it is set up by."""
        return {
            "PATH": os.defpath,
            "PYTHONPATH": os.pathsep.join(sys.path),
            **self.more,
            "TURNOUT_HOME": str(self.home),
            "LLM_BASE_URL": self.model,
            "LLM_API_KEY": "sesame",
            "LLM_MODEL": "m",
        }

    @asynccontextmanager
    async def gateway(self) -> AsyncIterator[None]:
        """Serve the gateway from this process, which nobody kills."""
        settings = load_settings(
            config=self.home / "turnout.toml", environment=dict(self.environment)
        )
        async with _gateway(settings, self.home / _SOCKET):
            yield

    async def start(self, role: Literal["all", "work"]) -> Process:
        """Start a process and wait until it is ready."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            __name__,
            role,
            str(self.home),
            env=self.environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdout is not None
        line = await process.stdout.readline()
        assert line == b"ready\n", line
        self.running.append(Process(role, process))
        return self.running[-1]

    async def close(self) -> None:
        """End what is still running."""
        for each in self.running:
            if each.process.returncode is None:
                await each.kill()


def _settings(home: Path) -> Settings:
    return load_settings(config=home / "turnout.toml")


@asynccontextmanager
async def _gateway(settings: Settings, uds: Path) -> AsyncIterator[None]:
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(database_of(settings)))
        ground = await ground_of(settings, database, clock, stack)
        site = await site_of(ground, lambda _: None, "absent")
        await stack.enter_async_context(serve(app_of(site, open_access(name="red")), uds=uds))
        yield


def _models(uds: Path) -> ModelsFor:
    @asynccontextmanager
    async def models(_: Order) -> AsyncIterator[ModelAccess]:
        clock = SystemClock()
        url = "http://gateway/v1"
        client = HttpModelClient(base_url=url, uds=uds, api_key="", clock=clock, lasting=True)
        async with client:
            yield ModelAccess(client, "loop")

    return models


async def _main(role: str, home: Path) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    settings, uds = _settings(home), home / _SOCKET
    async with AsyncExitStack() as stack:
        if role == "all":
            await stack.enter_async_context(_gateway(settings, uds))
        database = await stack.enter_async_context(open_database(database_of(settings)))
        work = open_durable(settings, database, SystemClock(), _models(uds), pace=_PACE)
        await stack.enter_async_context(work)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await ended.wait()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], Path(sys.argv[2])))
