"""Programs that say anything at all where a server of the protocol should speak."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.core.clock import SystemClock
from turnout.core.govern.connections import Connection
from turnout.errors import ConnectionFailedError, ToolError
from turnout.mcp.connections import McpConnections

SERVER = Connection("s", command=("server",), timeout=0.2, longest_result=500)
GOOD = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "s", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "done"}]},
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["tools", "content", "name", "inputSchema", "type", "text", "error"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
SAID: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.just("end"),
    st.binary(max_size=30),
    st.tuples(st.just("result"), JSON),
    st.tuples(st.just("error"), JSON),
    st.tuples(st.just("method"), st.sampled_from(["ping", "sampling/createMessage", "x"])),
)
"""For one request: the right answer, the end, bytes, or a message of which a part is anything."""


class Cage:
    """Walls in which a program is what it is told to say."""

    def __init__(self, script: Sequence[Any]) -> None:
        self.script = list(script)
        self.calls = 0

    async def speak(
        self, _: Connection, heard: AsyncIterator[bytes]
    ) -> AsyncGenerator[bytes, None]:
        """Answer each request by the next entry of the script, rightly once that is at its end."""
        async for line in heard:
            request = json.loads(line)
            self.calls += request.get("method") == "tools/call"
            if "id" not in request or "method" not in request:
                continue
            said = self.script.pop(0) if self.script else None
            if said == "end":
                raise ConnectionFailedError("its program ended")
            if isinstance(said, bytes):
                yield said + b"\n"
            if said is None or isinstance(said, bytes):
                found = GOOD.get(request["method"])
                said = ("result", found) if found else ("error", {"code": -32601, "message": "no"})
            message = {"jsonrpc": "2.0", "id": request["id"], said[0]: said[1]}
            sent = json.dumps(message).encode() + b"\n"
            yield sent[: len(sent) // 2]
            yield sent[len(sent) // 2 :]


@settings(max_examples=40, deadline=None)
@given(script=st.lists(SAID, max_size=6))
def test_whatever_a_server_says_a_call_ends_and_is_made_once(script: list[Any]) -> None:
    """In bounded time, by a result or an error that names the server; the tools are fit to show."""

    async def work() -> None:
        cage = Cage(script)
        async with McpConnections({"s": SERVER}, SystemClock(), cage) as servers:
            try:
                tools = await servers.tools("s")
                assert all(tool.parameters["type"] == "object" for tool in tools)
                before = cage.calls
                outcome = await servers.call("s", "t", {})
                assert len(outcome.text) < 600
            except (ConnectionFailedError, ToolError) as error:
                text = str(error)
                assert len(text) < 1_200
            else:
                assert cage.calls == before + 1
            assert cage.calls <= 1

    asyncio.run(asyncio.wait_for(work(), 20))
