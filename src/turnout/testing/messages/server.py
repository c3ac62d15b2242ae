"""A server of Anthropic's messages API that answers from a script, and fails from one too.

async with ScriptedMessagesServer([MessagesTurn((text("Hi."),))]) as server:
    ...  # Anthropic's SDK, or a gateway whose provider is at server.base_url
assert server.faults == []
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import orjson
from aiohttp import web

from turnout.core.json import JsonObject, as_text
from turnout.testing.loopback import HTML_PAGE, LoopbackServer, refuse, reset
from turnout.testing.messages.rules import request_faults
from turnout.testing.messages.turns import (
    MessagesRefusal,
    MessagesTurn,
    StreamedEvent,
    events,
    message,
)

__all__ = ["MessagesAnswer", "ReceivedRequest", "ScriptedMessagesServer"]

MessagesAnswer = MessagesTurn | MessagesRefusal

_IN_BAND: JsonObject = {
    "type": "error",
    "error": {"type": "overloaded_error", "message": "overloaded by script"},
}
_OVERSIZED = 17 * 2**20


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A request as it came."""

    headers: dict[str, str]
    """Names in lower case."""
    raw: bytes
    body: JsonObject
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the client went away before its answer was sent."""


class ScriptedMessagesServer(LoopbackServer):
    """On a free loopback port, alive inside `async with`.

    A script that has run out answers 400. A request that breaks the rules of the API is answered
    400, as the real one does, and noted in `faults`. The SDK wants `base_url` without `/v1`.
    """

    def __init__(
        self,
        script: Sequence[MessagesAnswer] | Callable[[ReceivedRequest], MessagesAnswer] = (),
        *,
        models: Sequence[str] = (),
        api_key: str = "",
        counts: int | None = None,
    ) -> None:
        super().__init__()
        self.requests: list[ReceivedRequest] = []
        """Every model call, in the order of arrival."""
        self.counted: list[ReceivedRequest] = []
        """Every request for a count."""
        self.faults: list[str] = []
        """What was wrong with the requests received; empty is what a test wants."""
        self.signatures: set[str] = set()
        """Of the thoughts that were sent."""
        self._script = script
        self._models = tuple(models)
        self._api_key = api_key
        self._counts = counts
        self._served = 0

    def _routes(self) -> Sequence[web.RouteDef]:
        served = [
            web.post("/v1/messages", self._messages),
            web.get("/v1/models", self._list_models),
        ]
        if self._counts is not None:
            served.append(web.post("/v1/messages/count_tokens", self._count))
        return served

    async def _list_models(self, request: web.Request) -> web.StreamResponse:
        if not self._admits(request):
            return refuse(_WRONG_KEY)
        listed = [{"type": "model", "id": name, "display_name": name} for name in self._models]
        return web.json_response({"data": listed, "has_more": False})

    async def _count(self, request: web.Request) -> web.StreamResponse:
        self.counted.append(await _received(request))
        if not self._admits(request):
            return refuse(_WRONG_KEY)
        return web.json_response({"input_tokens": self._counts})

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        received = await _received(request)
        answer = self._answer(received) if self._admits(request) else _WRONG_KEY
        self._served += 1
        try:
            if isinstance(answer, MessagesRefusal):
                return refuse(answer)
            return await self._serve(request, received, answer)
        except (asyncio.CancelledError, ConnectionError):
            received.closed.set()
            raise

    def _admits(self, request: web.Request) -> bool:
        return not self._api_key or request.headers.get("x-api-key") == self._api_key

    def _answer(self, received: ReceivedRequest) -> MessagesAnswer:
        place = len(self.requests)
        self.requests.append(received)
        faults = request_faults(received.body, self.signatures)
        if "anthropic-version" not in received.headers:
            faults.append("anthropic-version: header is required")
        if faults:
            self.faults += faults
            return MessagesRefusal(400, "invalid_request_error", "; ".join(faults))
        if callable(self._script):
            answer = self._script(received)
        elif place < len(self._script):
            answer = self._script[place]
        else:
            return MessagesRefusal(400, "invalid_request_error", "The script has no turn left.")
        if isinstance(answer, MessagesTurn):
            self.signatures |= {as_text(block.get("signature")) for block in answer.content}
        return answer

    async def _serve(
        self, request: web.Request, received: ReceivedRequest, turn: MessagesTurn
    ) -> web.StreamResponse:
        streamed = received.body.get("stream") is True
        match turn.fault:
            case "reset":
                reset(request)
                return web.Response()
            case "stall":
                await self._stopping.wait()
                return web.Response()
            case "html":
                return web.Response(body=HTML_PAGE, content_type="text/html")
            case "error_in_band" if not streamed:
                return web.json_response(_IN_BAND)
            case _:
                pass
        parts = self._parts(received, turn, streamed=streamed and turn.fault != "whole")
        kind = "text/event-stream" if streamed and turn.fault != "whole" else "application/json"
        kind = "text/plain" if turn.fault == "content_type" else kind
        response = web.StreamResponse(headers={"Content-Type": kind})
        if not streamed:
            response.content_length = sum(map(len, parts))
        await response.prepare(request)
        await self._send(request, response, parts, turn)
        return response

    def _parts(
        self, received: ReceivedRequest, turn: MessagesTurn, *, streamed: bool
    ) -> list[bytes]:
        model = as_text(received.body.get("model"))
        if not streamed:
            whole = orjson.dumps(message(turn, model, self._served))
            if turn.fault == "oversized":
                whole += b" " * (2 * _OVERSIZED)
            middle = len(whole) // 2
            return [
                whole[:middle],
                whole[middle:-5] if turn.fault == "bad_json" else whole[middle:],
            ]
        parts = [event.encode() for event in events(turn, model, self._served)]
        # Before the last piece of the last block: its end and the end of the message follow.
        middle = max(1, len(parts) - (3 if turn.fault == "no_stop" else 4))
        match turn.fault:
            case "bad_json":
                parts.insert(middle, b'event: content_block_delta\ndata: {"type": oops\n\n')
            case "error_in_band":
                parts[middle:] = [StreamedEvent("error", _IN_BAND).encode()]
            case "oversized":
                parts.insert(middle, b": " + b"x" * _OVERSIZED)
            case _:
                pass
        return [b"".join(parts[:middle]), *parts[middle:]] if not turn.pause else parts

    async def _send(
        self,
        request: web.Request,
        response: web.StreamResponse,
        parts: Sequence[bytes],
        turn: MessagesTurn,
    ) -> None:
        match turn.fault:
            case "reset_after_headers":
                reset(request)
                return
            case "drip":
                for byte in b"".join(parts):
                    await response.write(bytes([byte]))
            case "cut" | "stall_midway":
                await response.write(parts[0])
                if turn.fault == "stall_midway":
                    await self._stopping.wait()
                if request.transport is not None:
                    request.transport.close()
                return
            case _:
                for place, part in enumerate(parts):
                    if turn.pause and place:
                        await asyncio.sleep(turn.pause)
                    await response.write(part)
        await response.write_eof()


_WRONG_KEY = MessagesRefusal(401, "authentication_error", "invalid x-api-key")


async def _received(request: web.Request) -> ReceivedRequest:
    raw = await request.read()
    headers = {name.lower(): value for name, value in request.headers.items()}
    return ReceivedRequest(headers, raw, orjson.loads(raw))
