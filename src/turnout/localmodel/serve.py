"""The local model's server: a child process on loopback that ends with its parent."""

import asyncio
import importlib.util
import os
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import AsyncExitStack
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self

import aiohttp

from turnout.errors import MissingExtraError, ModelUnavailableError
from turnout.localmodel.models import KNOWN_MODELS

__all__ = ["CHILD", "LocalServer", "default_threads"]

# `-P`: the current directory may be a hostile repository with modules of these names.
CHILD: Final = (sys.executable, "-P", "-m", "turnout.localmodel.child")

_STOP_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.1
_HEALTH_TIMEOUT: Final = aiohttp.ClientTimeout(total=5)
_TAIL: Final = 2_000
"""Bytes of the server's own log that an error shows."""


_SPIN: Final = 2_000
"""How often a thread of the model looks for work before it goes to sleep.

OpenMP's own 300,000 make two threads on two cores many times slower than one thread where another
process uses a core (`bench/local_speed.py`)."""


def default_threads(cores: int | None = None) -> int:
    """Return three threads for four cores, rounded up: the rest is for tests and the service."""
    cores = len(os.sched_getaffinity(0)) if cores is None else cores
    return cores - cores // 4


class LocalServer:
    """An OpenAI-compatible endpoint for one model file; async context manager.

    Entering returns once the model is loaded: `MissingExtraError` without the extra `local`,
    `ModelUnavailableError` where the server does not come up within `startup_timeout` seconds.
    """

    def __init__(
        self,
        model_path: Path,
        *,
        threads: int | None = None,
        context: int = 8192,
        spin: int = _SPIN,
        startup_timeout: float = 120.0,
        child: Sequence[str] = CHILD,
    ) -> None:
        self._path = model_path
        self._numbers = (str(threads or default_threads()), str(context))
        self._variable = f"GOMP_SPINCOUNT={spin}"
        self._startup_timeout = startup_timeout
        self._child = child
        self._exit = AsyncExitStack()
        self._process: Process | None = None
        self._base_url = ""

    @property
    def model_name(self) -> str:
        """The name of the known model of that file, else the file's own."""
        names = {model.file: model.name for model in KNOWN_MODELS}
        return names.get(self._path.name, self._path.stem)

    @property
    def base_url(self) -> str:
        """Address up to and including `/v1`; empty before the server is up."""
        return self._base_url

    async def __aenter__(self) -> Self:
        if importlib.util.find_spec("xllamacpp") is None:
            raise MissingExtraError(
                "The local model needs the package xllamacpp.",
                mend="Install it: pip install 'turnout[local]'",
            )
        if not self._path.is_file():
            message = f"There is no model file {self._path}."
            raise ModelUnavailableError(message, mend="Fetch it: turnout models pull")
        with tempfile.TemporaryFile() as log:
            try:
                async with AsyncExitStack() as stack, asyncio.timeout(self._startup_timeout):
                    await self._start(log, stack)
                    self._exit = stack.pop_all()
            except TimeoutError as error:
                why = f"was not up within {self._startup_timeout:g} seconds"
                raise _failed(why, log) from error
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._exit.aclose()

    async def wait(self) -> None:
        """Return when the server has ended by itself."""
        if self._process is not None:
            await self._process.wait()

    async def _start(self, log: BinaryIO, stack: AsyncExitStack) -> None:
        # libgomp reads the variable when it is loaded: the child would set it too late.
        argv = (
            "env",
            self._variable,
            *self._child,
            str(self._path),
            self.model_name,
            *self._numbers,
        )
        # A session of its own: Ctrl-C in a terminal is for us to handle.
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=PIPE, stdout=PIPE, stderr=log, start_new_session=True
        )
        stack.push_async_callback(_stop, process)
        address = await _address(process)
        if not address:
            await process.wait()
            raise _failed(f"ended with exit code {process.returncode}", log)
        async with aiohttp.ClientSession(timeout=_HEALTH_TIMEOUT) as session:
            while not await _healthy(session, address):
                continue
        self._process, self._base_url = process, f"{address}/v1"


async def _address(process: Process) -> str:
    """Return what the child says once it has loaded the model; empty where it ended."""
    if process.stdout is None:
        return ""
    async for line in process.stdout:
        if line.startswith(b"http://"):
            return line.decode().strip()
    return ""


async def _healthy(session: aiohttp.ClientSession, address: str) -> bool:
    """Ask for the server's health; wait a moment where it is not well."""
    try:
        async with session.get(f"{address}/health") as response:
            if response.status == HTTPStatus.OK:
                return True
    except (aiohttp.ClientError, TimeoutError):
        pass
    await asyncio.sleep(_POLL_SECONDS)
    return False


async def _stop(process: Process) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(_STOP_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


def _failed(why: str, log: BinaryIO) -> ModelUnavailableError:
    log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL))
    said = log.read().decode(errors="replace").strip()
    return ModelUnavailableError(
        f"The local model's server {why}. It said: {said or 'nothing'}",
        mend="Fetch the model again with `turnout models pull`, or free some memory.",
    )
