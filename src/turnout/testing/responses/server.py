"""A server of the responses API that answers from a script, and fails from one too.

async with ScriptedResponsesServer([ResponsesTurn((said("Hi."),))]) as server:
    ...  # OpenAI's SDK, or a gateway whose provider is at server.base_url
assert server.faults == []
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import orjson
from aiohttp import web

from turnout.core.json import JsonObject, as_objects, as_text
from turnout.testing.loopback import HTML_PAGE, LoopbackServer, refuse, reset
from turnout.testing.responses.turns import ResponsesTurn, events, response
from turnout.testing.turns import Refusal

__all__ = ["ReceivedRequest", "ResponsesAnswer", "ScriptedResponsesServer"]

ResponsesAnswer = ResponsesTurn | Refusal

_OVERSIZED = 33 * 2**20
_ERROR: JsonObject = {"type": "server_error", "code": "server_error", "message": "scripted failure"}
_OURS = frozenset({"routing", "extended_thinking"})
_CALLS = frozenset({"function_call", "custom_tool_call"})


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A request as it came."""

    headers: Mapping[str, str]
    """Names in lower case."""
    raw: bytes
    body: JsonObject
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set where the caller went away before its answer was complete."""

    @property
    def items(self) -> list[JsonObject]:
        """The input items; a text is none."""
        return as_objects(self.body.get("input"))


class ScriptedResponsesServer(LoopbackServer):
    """On a free loopback port, alive inside `async with`.

    A script that has run out answers 400. A request that breaks the rules of the API is answered
    400, as the real one does, and noted in `faults`.
    """

    def __init__(
        self,
        script: Sequence[ResponsesAnswer] | Callable[[ReceivedRequest], ResponsesAnswer] = (),
        *,
        models: Sequence[str] = (),
        api_key: str = "",
    ) -> None:
        super().__init__()
        self.requests: list[ReceivedRequest] = []
        """Every model call, in the order of arrival."""
        self.faults: list[str] = []
        """What was wrong with the requests received; empty is what a test wants."""
        self._thoughts: set[str] = set()
        self._script = script
        self._models = tuple(models)
        self._api_key = api_key

    def _routes(self) -> Sequence[web.RouteDef]:
        return (
            web.post("/v1/responses", self._respond),
            web.get("/v1/models", self._list_models),
        )

    async def _list_models(self, request: web.Request) -> web.StreamResponse:
        if not self._admits(request):
            return refuse(_WRONG_KEY)
        listed = [{"id": name, "object": "model"} for name in self._models]
        return web.json_response({"object": "list", "data": listed})

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        received = ReceivedRequest(headers, raw, orjson.loads(raw))
        answer = self._answer(received) if self._admits(request) else _WRONG_KEY
        try:
            if isinstance(answer, Refusal):
                return refuse(answer)
            if answer.delay:
                await asyncio.sleep(answer.delay)
            return await self._serve(request, received, answer)
        except (asyncio.CancelledError, ConnectionError):
            received.closed.set()
            raise

    def _admits(self, request: web.Request) -> bool:
        wanted = f"Bearer {self._api_key}"
        return not self._api_key or request.headers.get("authorization") == wanted

    def _answer(self, received: ReceivedRequest) -> ResponsesAnswer:
        place = len(self.requests)
        self.requests.append(received)
        faults = list(_request_faults(received, self._thoughts))
        if faults:
            self.faults += faults
            return Refusal(400, "; ".join(faults), "invalid_request_error")
        if callable(self._script):
            answer = self._script(received)
        elif place < len(self._script):
            answer = self._script[place]
        else:
            return Refusal(400, "The script has no turn left.", "script_exhausted")
        if isinstance(answer, ResponsesTurn):
            kept = (as_text(item.get("encrypted_content")) for item in answer.items)
            self._thoughts |= {one for one in kept if one}
        return answer

    async def _serve(
        self, request: web.Request, received: ReceivedRequest, turn: ResponsesTurn
    ) -> web.StreamResponse:
        match turn.fault:
            case "reset":
                reset(request)
                return web.Response()
            case "stall":
                await self._stopping.wait()
                return web.Response()
            case "html":
                return web.Response(body=HTML_PAGE, content_type="text/html")
            case _:
                pass
        streamed = received.body.get("stream") is True and turn.fault != "whole"
        parts = self._parts(received, turn, streamed=streamed)
        kind = "text/event-stream" if streamed else "application/json"
        kind = "text/plain" if turn.fault == "content_type" else kind
        answer = web.StreamResponse(headers={"Content-Type": kind})
        if not streamed:
            answer.content_length = sum(map(len, parts))
        await answer.prepare(request)
        await self._send(request, answer, parts, turn)
        return answer

    def _parts(
        self, received: ReceivedRequest, turn: ResponsesTurn, *, streamed: bool
    ) -> list[bytes]:
        """Return what is written, in writes; a fault in the middle replaces the rest."""
        model, number = as_text(received.body.get("model")), len(self.requests)
        if not streamed:
            whole = orjson.dumps(response(turn, model, number))
            match turn.fault:
                case "error_in_band":
                    whole = orjson.dumps({"error": _ERROR})
                case "failed":
                    broken = {**response(turn, model, number), "status": "failed", "error": _ERROR}
                    whole = orjson.dumps(broken)
                case "bad_json":
                    whole = whole[:-5]
                case "oversized":
                    whole += b" " * _OVERSIZED
                case _:
                    pass
            return [whole[: len(whole) // 2], whole[len(whole) // 2 :]]
        told = list(events(turn, model, number))
        parts = [_line(event) for event in told]
        # Before the last piece of the last item.
        deltas = [at for at, event in enumerate(told) if as_text(event["type"]).endswith("delta")]
        middle = deltas[-1] if deltas else 1
        match turn.fault:
            case "bad_json":
                parts.insert(middle, b'data: {"type": oops\n\n')
            case "oversized":
                parts.insert(middle, b"data: " + b" " * _OVERSIZED + b"{}\n\n")
            case "error_in_band":
                parts[middle:] = [_line({**_ERROR, "type": "error"})]
            case "failed":
                broken = {"id": "resp_1", "status": "failed", "error": _ERROR}
                parts[middle:] = [_line({"type": "response.failed", "response": broken})]
            case "no_completed":
                del parts[middle:]
            case _:
                pass
        return parts

    async def _send(
        self,
        request: web.Request,
        answer: web.StreamResponse,
        parts: Sequence[bytes],
        turn: ResponsesTurn,
    ) -> None:
        if turn.fault == "drip":
            parts = [bytes([byte]) for byte in b"".join(parts)]
        end = len(parts)
        if turn.fault in {"cut", "stall_midway"}:
            end = max(1, len(parts) - 4)
        for at, part in enumerate(parts[: 0 if turn.fault == "reset_after_headers" else end]):
            if turn.pause and at:
                await asyncio.sleep(turn.pause)
            await answer.write(part)
        match turn.fault:
            case "reset_after_headers":
                reset(request)
            case "stall_midway" | "no_end":
                await self._stopping.wait()
            case "cut" if request.transport is not None:
                request.transport.close()
            case _:
                await answer.write_eof()


_WRONG_KEY = Refusal(401, "Incorrect API key provided.", "invalid_api_key")


def _request_faults(received: ReceivedRequest, thoughts: set[str]) -> Iterator[str]:
    """Yield where a request breaks the rules that the real server holds clients to."""
    body = received.body
    if "previous_response_id" in body:
        yield f"Previous response with id {body['previous_response_id']!r} not found."
    yield from (f"Unknown parameter: {name!r}." for name in _OURS & body.keys())
    if "messages" in body:
        yield "Unsupported parameter: 'messages'."
    waiting: Counter[str] = Counter()
    for item in received.items:
        kind, call = as_text(item.get("type")), as_text(item.get("call_id"))
        kept = as_text(item.get("encrypted_content"))
        if kind == "reasoning" and kept and kept not in thoughts:
            yield "The encrypted content could not be verified."
        if kind in _CALLS:
            waiting[call] += 1
        elif kind.removesuffix("_output") in _CALLS:
            if not waiting[call]:
                yield f"No tool call found for function call output with call_id {call}."
            waiting[call] -= 1
    yield from (f"No tool output found for function call {call}." for call in (+waiting))


def _line(event: JsonObject) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (as_text(event["type"]).encode(), orjson.dumps(event))
