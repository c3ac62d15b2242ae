"""Other gateways, started for comparison where they are installed."""

import asyncio
import json
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from children import bound

__all__ = ["Target", "free_port", "litellm", "portkey", "running"]

_LOOKS, _BETWEEN_LOOKS = 300, 0.2
_ENDING = 10.0
"""Seconds that a server has to end by itself."""


@dataclass(frozen=True, slots=True)
class Target:
    """Somebody who serves chat completions on loopback."""

    port: int
    body: Mapping[str, object]
    headers: Mapping[str, str] = field(default_factory=dict)


@asynccontextmanager
async def litellm(
    upstream: int, body: Mapping[str, object], key: str
) -> AsyncIterator[Target | None]:
    """Run LiteLLM's proxy, one worker, its key check on; None where it is not on the path."""
    program = shutil.which("litellm")
    if program is None:
        yield None
        return
    parameters = {
        "model": f"openai/{body['model']}",
        "api_base": f"http://127.0.0.1:{upstream}/v1",
        "api_key": "none",
    }
    config = {
        "model_list": [{"model_name": body["model"], "litellm_params": parameters}],
        "general_settings": {"master_key": key},
    }
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "config.yaml"
        file.write_text(json.dumps(config))
        settings = ("LITELLM_LOCAL_MODEL_COST_MAP=True", "LITELLM_TELEMETRY=False")
        options = ("--config", str(file), "--host", "127.0.0.1", "--port", str(port))
        async with running(["env", *settings, program, *options], port):
            yield Target(port, body, {"authorization": f"Bearer {key}"})


@asynccontextmanager
async def portkey(upstream: int, body: Mapping[str, object]) -> AsyncIterator[Target | None]:
    """Run Portkey's gateway; None where its `gateway` is not on the path."""
    program = _portkey_program()
    if program is None:
        yield None
        return
    port = free_port()
    headers = {
        "authorization": "Bearer none",
        "x-portkey-provider": "openai",
        "x-portkey-custom-host": f"http://127.0.0.1:{upstream}/v1",
    }
    async with running([program, f"--port={port}", "--headless"], port):
        yield Target(port, body, headers)


def _portkey_program() -> str | None:
    program = shutil.which("gateway")
    return program if program and "portkey" in str(Path(program).resolve()) else None


def free_port() -> int:
    """Return a port of loopback that nobody listens on."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        return port


@asynccontextmanager
async def running(command: Sequence[str], port: int) -> AsyncIterator[None]:
    """Run a server until the block ends, entered once it answers on its port.

    It ends with us, too, and with it what it has started in its process group.
    """
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *bound(command), stdout=quiet, stderr=quiet, start_new_session=True
    )
    try:
        await _wait_until_up(port)
        yield
    finally:
        await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a server, by force where it takes long, and all that is left of its group."""
    if process.returncode is None:
        process.terminate()
    try:
        async with asyncio.timeout(_ENDING):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


async def _wait_until_up(port: int) -> None:
    async with aiohttp.ClientSession() as http:
        for _ in range(_LOOKS):
            if await _answers(http, port):
                return
            await asyncio.sleep(_BETWEEN_LOOKS)
    raise TimeoutError(f"nothing answers on port {port}")


async def _answers(http: aiohttp.ClientSession, port: int) -> bool:
    try:
        async with http.get(f"http://127.0.0.1:{port}/"):
            return True
    except aiohttp.ClientError:
        return False
