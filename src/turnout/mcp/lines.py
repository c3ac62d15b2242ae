"""JSON-RPC in lines, with a program that nobody vouches for."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, Final

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import ErrorData, JSONRPCError, JSONRPCRequest, jsonrpc_message_adapter
from pydantic import ValidationError

from turnout.core.json import JsonValue
from turnout.errors import ConnectionFailedError
from turnout.mcp.failures import ILL_FORMED

__all__ = ["LONGEST_LINE", "OnEnd", "over_lines"]

LONGEST_LINE: Final = 8 * 2**20
"""Bytes of one message."""

_MOST_UNASKED: Final = 10_000
_MOST_UNASKED_BYTES: Final = 32 * 2**20
"""What a program may say for each request of ours; then it is not listened to any more."""

_ANSWER_BEGINS: Final = re.compile(
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,\s*"(?:result|error)"'
)
_ANSWER_ENDS: Final = re.compile(rb'.*,\s*"id"\s*:\s*(\d{1,15})\s*\}\s*', re.DOTALL)

_OF_ANSWERS: Final = frozenset({"jsonrpc", "result", "error"})

Say = Callable[[bytes], Awaitable[None]]

OnEnd = Callable[[str], None]
"""Told once nothing more is heard, with the reason as the end of a sentence, or nothing."""


@asynccontextmanager
async def over_lines(
    lines: AsyncGenerator[bytes, None], say: Say, on_end: OnEnd
) -> AsyncIterator[Any]:
    """Open the transport over the lines that a program says and those that `say` tells it.

    The session hears of the end as the end of the stream.
    """
    heard, hears = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    said, says = anyio.create_memory_object_stream[SessionMessage](0)
    budget = _Budget()
    listening = asyncio.create_task(_listen(lines, heard, budget))
    listening.add_done_callback(lambda ended: on_end(_why(ended)))
    speaking = asyncio.create_task(_speak(says, say, budget))
    try:
        yield hears, said
    finally:
        for task in (listening, speaking):
            task.cancel()
        await asyncio.wait({listening, speaking})
        for stream in (heard, hears, said, says):
            stream.close()


class _Budget:
    """How much may still be said."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self._messages, self._bytes = _MOST_UNASKED, _MOST_UNASKED_BYTES

    def allows(self, line: bytes) -> bool:
        self._messages -= 1
        self._bytes -= len(line)
        return self._messages >= 0 and self._bytes >= 0


async def _listen(
    lines: AsyncGenerator[bytes, None],
    heard: anyio.abc.ObjectSendStream[SessionMessage | Exception],
    budget: _Budget,
) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with heard, aclosing(lines):
            async for line in lines:
                if not budget.allows(line):
                    raise ConnectionFailedError("says far more than it is asked for")
                await heard.send(_message(line))


async def _speak(
    says: anyio.abc.ObjectReceiveStream[SessionMessage], say: Say, budget: _Budget
) -> None:
    with suppress(ConnectionError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with says:
            async for message in says:
                if isinstance(message.message, JSONRPCRequest):
                    budget.renew()
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await say(text.encode() + b"\n")


def _why(listening: "asyncio.Task[None]") -> str:
    error = None if listening.cancelled() else listening.exception()
    return error.message if isinstance(error, ConnectionFailedError) else ""


def _message(line: bytes) -> SessionMessage | Exception:
    try:
        return _valid(line)
    except ValidationError as error:
        return _repaired(line) or error


def _valid(line: bytes) -> SessionMessage:
    return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))


def _repaired(line: bytes) -> SessionMessage | None:
    """Return the message with what is no text in it replaced, or an error for whom it answers.

    Without that, whoever asked would wait until its time is over.
    """
    said: JsonValue = None
    try:
        said = json.loads(line.decode(errors="replace"))
        return _valid(json.dumps(said, ensure_ascii=False).encode(errors="replace"))
    except ValidationError:
        asked = _id(said)
    except (ValueError, RecursionError):
        asked = _id_at_edge(line)
    if asked is None:
        return None
    error = ErrorData(code=ILL_FORMED, message="sent an answer that is not of the protocol")
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=asked, error=error))


def _id(said: JsonValue) -> int | None:
    """Return the number of the request that a message answers."""
    if not isinstance(said, dict) or "method" in said or not said.keys() & _OF_ANSWERS:
        return None
    number = said.get("id")
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def _id_at_edge(line: bytes) -> int | None:
    """Return that number of a message that cannot be read, where it is first or last in it."""
    if not line[:100].lstrip().startswith(b"{"):
        return None
    found = _ANSWER_BEGINS.match(line) or _ANSWER_ENDS.fullmatch(line, max(0, len(line) - 100))
    return int(found[1]) if found else None
