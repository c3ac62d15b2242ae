"""Answers that are not quite of the protocol end the call for which they came."""

import json
from collections.abc import AsyncGenerator, AsyncIterator

import pytest

from turnout.core.clock import SystemClock
from turnout.core.govern.connections import Connection
from turnout.core.json import JsonObject, JsonValue
from turnout.errors import ConnectionFailedError
from turnout.mcp.connections import McpConnections

SERVER = Connection("s", command=("server",), timeout=5.0)
TOOL: JsonObject = {"name": "t", "inputSchema": {"type": "object"}}
OPENED: JsonObject = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "s", "version": "1"},
}
DEEP = b'{"a":' * 3_000 + b"1" + b"}" * 3_000


class Cage:
    """Walls in which a program answers a call, and the question for its tools, as it is told."""

    def __init__(self, answer: bytes, tools: JsonValue = (TOOL,)) -> None:
        self._answer = answer
        self._tools = tools

    async def speak(
        self, _: Connection, heard: AsyncIterator[bytes]
    ) -> AsyncGenerator[bytes, None]:
        """Answer each request; `ID` in an answer stands for the number of the request."""
        results = {"initialize": OPENED, "tools/list": {"tools": self._tools}}
        async for line in heard:
            asked = json.loads(line)
            number, method = asked.get("id"), asked.get("method")
            if method == "tools/call":
                yield self._answer.replace(b"ID", str(number).encode()) + b"\n"
            elif method in results:
                said = {"jsonrpc": "2.0", "id": number, "result": results[method]}
                yield json.dumps(said).encode() + b"\n"
            elif number is not None:
                said = {"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "no"}}
                yield json.dumps(said).encode() + b"\n"


async def _called(answer: bytes) -> str:
    async with McpConnections({"s": SERVER}, SystemClock(), Cage(answer)) as servers:
        return (await servers.call("s", "t", {})).text


@pytest.mark.parametrize(
    ("content", "read"),
    [
        (b'{"type":"text","text":"a\xff\xfeb"}', "a\ufffd\ufffdb"),
        (b'{"type":"text","text":"a\\ud800b"}', "a?b"),
        (b'{"type":"hologram","x":1},{"type":"text","text":"hi"}', "[hologram, not shown]\nhi"),
        (
            b'7,{"type":"text","text":5},{"type":"text","text":"hi"}',
            "[content, not shown]\n[text, not shown]\nhi",
        ),
    ],
)
async def test_what_can_be_read_of_an_answer_is_read(content: bytes, read: str) -> None:
    """Bytes that are no text are replaced, content of no known kind is named."""
    answer = b'{"jsonrpc":"2.0","id":ID,"result":{"content":[' + content + b"]}}"
    assert await _called(answer) == read


@pytest.mark.parametrize(
    "answer",
    [
        b'{"jsonrpc":"2.0","id":ID,"error":{"code":"x","message":5}}',
        b'{"id":ID,"result":7}',
        b'{"jsonrpc":"2.0","id":ID,"result":{"structuredContent":' + DEEP + b"}}",
        b'{"result":{"structuredContent":' + DEEP + b'},"jsonrpc":"2.0","id":ID}',
        b'{"jsonrpc":"2.0","id":ID,"result":{"structuredContent":' + DEEP[:-2_400] + b"}}",
        b'{"jsonrpc":"2.0","id":ID,"result":{"content":[}}',
    ],
)
async def test_an_answer_that_cannot_be_read_ends_its_call_at_once(answer: bytes) -> None:
    """Nobody waits for the time-out, and the error names the server."""
    with pytest.raises(ConnectionFailedError, match="s: sent an answer that is not of the proto"):
        await _called(answer)


async def test_what_is_no_answer_ends_no_call() -> None:
    """Lines of a log, and requests under the same number."""
    noise = b'starting\n{"level":"info","id":ID}\n{"jsonrpc":"2.0","id":ID,"method":5}\n'
    answer = b'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"hi"}]}}'
    assert await _called(noise + answer) == "hi"


async def test_tools_that_are_unfit_take_no_others_with_them() -> None:
    """Those with a schema that is none of an object are left out."""
    schemas: list[JsonValue] = [
        {"type": "string"},
        {"type": "object", "properties": 5},
        {"type": "object", "required": "x"},
        {"type": "object", "properties": {"a": 3}},
        None,
    ]
    unfit: list[JsonValue] = [
        {"name": f"bad{at}", "inputSchema": schema} for at, schema in enumerate(schemas)
    ]
    cage = Cage(b"", [*unfit, 5, TOOL])
    async with McpConnections({"s": SERVER}, SystemClock(), cage) as servers:
        assert [tool.name for tool in await servers.tools("s")] == ["t"]
