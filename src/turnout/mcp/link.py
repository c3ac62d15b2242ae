"""One connection, opened at first use, kept open, opened anew where it broke."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from typing import Final, NamedTuple, TypeVar

import anyio
from mcp import Client, MCPError, types
from mcp.client import IncomingMessage
from pydantic import ValidationError

from turnout.core.clock import Clock
from turnout.core.govern.connections import Connection, ConnectionTool, ToolOutcome
from turnout.core.json import JsonObject
from turnout.errors import ConnectionFailedError, ToolError
from turnout.mcp.failures import CLOSED, ILL_FORMED, Failures
from turnout.mcp.http import UNREACHED
from turnout.mcp.reach import Reach
from turnout.mcp.reading import Scrubber, read_result, usable_tools
from turnout.mcp.screening import screened

__all__ = ["Link"]

_FRESH: Final = 60.0
"""Seconds for which a list of tools is believed."""
_RESTING: Final = 2.0
"""Seconds for which nobody tries again what could not be opened."""
_AT_ONCE: Final = 16
_MOST_TOOLS: Final = 256
_MOST_PAGES: Final = 32
_TERMINATED: Final = "Session terminated"
_SILENT: Final = 2.0
"""Seconds in which a server that is there says what tools it has."""
_ENDING: Final = 10.0
"""Seconds that a connection has to close."""

_BROKEN: Final = (
    MCPError,
    ConnectionFailedError,
    ValidationError,
    ExceptionGroup,
    OSError,
    RuntimeError,
)
"""All by which the SDK says that a connection cannot be opened, or is gone."""

Answer = TypeVar("Answer")


class _LostError(Exception):
    """The connection is no longer there."""

    def __init__(self, why: str, *, delivered: bool) -> None:
        super().__init__(why)
        self.delivered = delivered
        """Whether the server may have acted on the request."""


class _Listed(NamedTuple):
    at: float
    tools: tuple[ConnectionTool, ...]


class _Failed(NamedTuple):
    at: float
    error: ConnectionFailedError


class _Ending(asyncio.Event):
    """Set once a connection is to be closed, or is at its end."""

    why = ""
    """The end of a sentence, where the other side has ended it and the reason is known."""

    def note(self, why: str) -> None:
        self.why = why
        self.set()


class _Open(NamedTuple):
    client: Client
    owner: "asyncio.Task[None]"
    ending: _Ending


class Link:
    """Speaks to one server; safe for any number of callers at once."""

    def __init__(self, connection: Connection, clock: Clock, reach: Reach) -> None:
        self._connection = connection
        self._reach = reach
        self._clock = clock
        self._scrub = Scrubber(connection.secrets)
        self._failures = Failures(connection, reach.called, self._scrub)
        self._opening = asyncio.Lock()
        self._listing = asyncio.Lock()
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._open: _Open | None = None
        self._endings: set[asyncio.Task[None]] = set()
        self._listed: _Listed | None = None
        self._unlisted: _Failed | None = None
        self._unopened: _Failed | None = None

    async def tools(self) -> tuple[ConnectionTool, ...]:
        """Return the tools that may be used, by name; `ConnectionFailedError` where none can."""
        came = self._clock.monotonic()
        async with self._listing:
            if self._unlisted is not None and self._unlisted.at > came:
                raise self._unlisted.error
            listed = self._listed
            if listed is None or self._clock.monotonic() - listed.at > _FRESH:
                self._listed = listed = await self._list()
            return listed.tools

    async def call(self, tool: str, arguments: JsonObject) -> ToolOutcome:
        """Run a tool; `ToolError` where the server refuses, `ConnectionFailedError` otherwise."""

        async def run(client: Client) -> types.CallToolResult:
            # Not `client.call_tool`: it checks the result against patterns of the server's own
            # making, which may take for ever.
            asked = types.CallToolRequestParams(name=tool, arguments=dict(arguments))
            request = types.CallToolRequest(params=asked)
            return await client.session.send_request(request, types.CallToolResult)

        async def placed() -> types.CallToolResult:
            async with self._places:
                return await self._asked(run, again=False)

        result = await self._within(placed)
        return read_result(result, self._connection, self._scrub)

    async def close(self) -> None:
        """Close the connection; one that does not close in time is left to itself."""
        async with self._opening:
            if self._open is not None:
                self._drop(self._open)
        if self._endings:
            _, late = await asyncio.wait(self._endings, timeout=_ENDING)
            for owner in late:
                owner.cancel()

    async def _list(self) -> _Listed:
        try:
            ask = partial(_list_tools, allow=self._connection.allow)
            tools = await self._within(lambda: self._asked(ask, again=True))
        except ToolError as error:
            raise self._failures.of(error.message) from error
        except ConnectionFailedError as error:
            self._unlisted = _Failed(self._clock.monotonic(), error)
            raise
        return _Listed(self._clock.monotonic(), usable_tools(tools, self._connection, self._scrub))

    async def _within(self, work: Callable[[], Awaitable[Answer]]) -> Answer:
        seconds = self._connection.timeout
        try:
            async with asyncio.timeout(seconds):
                return await work()
        except TimeoutError:
            if self._reach.alone:
                await self._drop_silent()
            raise self._failures.of(f"did not answer within {seconds:g} s") from None

    async def _asked(self, ask: Callable[[Client], Awaitable[Answer]], *, again: bool) -> Answer:
        """Ask over the open connection, and once more over a new one where the old was gone."""
        was_open = self._open is not None
        try:
            return await self._ask_once(ask)
        except _LostError as lost:
            if not was_open or (lost.delivered and not again):
                raise self._failures.of(str(lost)) from lost
        try:
            return await self._ask_once(ask)
        except _LostError as lost:
            raise self._failures.of(str(lost)) from lost

    async def _ask_once(self, ask: Callable[[Client], Awaitable[Answer]]) -> Answer:
        opened = await self._opened()
        try:
            return await ask(opened.client)
        except MCPError as error:
            if error.code == UNREACHED or error.message == _TERMINATED:
                self._drop(opened)
                raise _LostError(error.message, delivered=False) from error
            if error.code == CLOSED:
                self._drop(opened)
                why = opened.ending.why or "ended before it answered"
                raise _LostError(why, delivered=True) from error
            if error.code == ILL_FORMED:
                raise self._failures.of(error.message) from error
            raise ToolError(self._scrub(error.message)[:1_000]) from error
        except ValidationError as error:
            raise self._failures.of("sent an answer that is not of the protocol") from error
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            self._drop(opened)
            raise _LostError("is no longer there", delivered=False) from error
        except RuntimeError as error:
            self._drop(opened)
            raise _LostError("is no longer there", delivered=True) from error

    async def _drop_silent(self) -> None:
        """Give up a server that answers nothing any more; the next call starts it anew."""
        opened = self._open
        if opened is None:
            return
        try:
            async with asyncio.timeout(_SILENT):
                await opened.client.list_tools()
        except MCPError as error:
            if error.code != CLOSED:
                return
            self._drop(opened)
        except (TimeoutError, ValidationError, RuntimeError, anyio.BrokenResourceError):
            self._drop(opened)

    async def _opened(self) -> _Open:
        async with self._opening:
            if self._open is not None:
                if not (self._open.ending.is_set() or self._open.owner.done()):
                    return self._open
                self._drop(self._open)
            failed = self._unopened
            if failed is not None and self._clock.monotonic() - failed.at < _RESTING:
                raise failed.error
            try:
                self._open = await self._start()
            except ConnectionFailedError as error:
                self._unopened = _Failed(self._clock.monotonic(), error)
                raise
            self._unopened = self._listed = None
            return self._open

    async def _start(self) -> _Open:
        ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        ending = _Ending()
        owner = asyncio.create_task(self._own(ready, ending))
        owner.add_done_callback(lambda ended: self._ended(ended, ready))
        try:
            client = await asyncio.shield(ready)
        except asyncio.CancelledError:
            ready.cancel()
            owner.cancel()
            self._ends(owner)
            raise
        return _Open(client, owner, ending)

    def _ended(self, owner: "asyncio.Task[None]", ready: "asyncio.Future[Client]") -> None:
        """Leave nobody waiting for a connection that is not coming."""
        failed = None if owner.cancelled() else owner.exception()
        if not ready.done():
            ready.set_exception(failed or self._failures.of("ended before it was open"))

    async def _own(self, ready: "asyncio.Future[Client]", ending: _Ending) -> None:
        """Hold the connection open: the SDK wants it closed by the task that opened it."""
        try:
            async with self._connected(ending) as client:
                ready.set_result(client)
                await ending.wait()
        except _BROKEN as error:
            if not ready.done():
                ready.set_exception(self._failures.explained(error, ending.why))

    @asynccontextmanager
    async def _connected(self, ending: _Ending) -> AsyncIterator[Client]:
        transport = screened(self._reach.transport(self._connection, ending.note))
        info = types.Implementation(name="turnout", version=version("turnout"))
        client = Client(transport, cache=None, client_info=info, message_handler=self._note)
        async with client as opened:
            yield opened

    async def _note(self, message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._listed = None

    def _drop(self, opened: _Open) -> None:
        """Give a connection up; it closes in its own time."""
        if self._open is opened:
            self._open = self._listed = None
        opened.ending.set()
        self._ends(opened.owner)

    def _ends(self, owner: "asyncio.Task[None]") -> None:
        self._endings.add(owner)
        owner.add_done_callback(self._endings.discard)


async def _list_tools(client: Client, allow: Collection[str]) -> tuple[types.Tool, ...]:
    tools: list[types.Tool] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += [tool for tool in page.tools if not allow or tool.name in allow]
        cursor = page.next_cursor
        if cursor is None or len(tools) >= _MOST_TOOLS:
            break
    return tuple(tools[:_MOST_TOOLS])
