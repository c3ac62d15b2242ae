"""Runs that are ordered over the API, to be looked at in the browser."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import aiohttp
from tests.browser.real_console import ConsoleRole, RealConsole

from turnout.testing.turns import Call, Turn

__all__ = ["GATED", "call", "gated_turns", "happened", "ordered"]

_SECONDS: Final = 180.0
GATED: Final = "Write new into the gated file"
_DIFF: Final = "--- a/gated.txt\n+++ b/gated.txt\n@@ -1 +1 @@\n-old\n+new\n"


def gated_turns(said: str) -> Sequence[Turn]:
    """Return what a model does whose patch waits for a person, and says at the end."""
    patch = Call("apply_patch", {"diff": _DIFF})
    return (Turn("Patch it."), Turn(calls=(patch,)), Turn(said), Turn("It is patched."))


async def call(
    console: RealConsole, method: str, path: str, role: ConsoleRole = "operator", **options: Any
) -> Any:
    """Ask the API for something, and return its JSON."""
    headers = {"authorization": f"Bearer {console.keys[role]}"}
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(_SECONDS)) as http,
        http.request(method, console.api + path, headers=headers, **options) as answer,
    ):
        assert answer.ok, await answer.text()
        return await answer.json()


async def ordered(
    console: RealConsole, task: str, turns: Sequence[Turn] = (), *, until: str = "", **order: Any
) -> str:
    """Order a run in which the model says this, and wait for an event; return its name."""
    console.spoken.teach(task, turns)
    body = {"task": task, "repo": "notes", **order}
    name: str = (await call(console, "POST", "/runs", json=body))["id"]
    if until:
        await happened(console, name, until)
    return name


async def happened(console: RealConsole, name: str, event: str) -> None:
    """Wait until an event is on the record of a run; three minutes are an error."""
    headers = {"authorization": f"Bearer {console.keys['viewer']}"}
    wanted, seen = f"event: {event}\n".encode(), b""
    async with (
        asyncio.timeout(_SECONDS),
        aiohttp.ClientSession(headers=headers) as http,
        http.get(f"{console.api}/runs/{name}/events") as answer,
    ):
        async for part in answer.content.iter_any():
            seen = seen[-len(wanted) :] + part
            if wanted in seen:
                return
    raise AssertionError(f"{name} has ended without {event}")
