"""JSON-RPC in lines, with a program that nobody vouches for."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, Final

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCRequest, jsonrpc_message_adapter
from pydantic import ValidationError

from turnout.errors import ConnectionFailedError

__all__ = ["LONGEST_LINE", "OnEnd", "over_lines"]

LONGEST_LINE: Final = 8 * 2**20
"""Bytes of one message."""

_MOST_UNASKED: Final = 10_000
_MOST_UNASKED_BYTES: Final = 32 * 2**20
"""What a program may say for each request of ours; then it is not listened to any more."""

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
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValidationError as error:
        return error
