"""A model server that answers from a script, and fails from one too.

async with ScriptedModelServer([Turn(calls=(Call("finish"),)), Turn("done")]) as server:
    ...  # any OpenAI-compatible client against server.base_url
assert server.requests[0].tool_names == ("finish",)
"""

import asyncio
import json
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from aiohttp import web

from turnout.core.json import JsonObject
from turnout.testing.loopback import HTML_PAGE, LoopbackServer, refuse, reset
from turnout.testing.obedient import obedient
from turnout.testing.recorded import RecordedRequest, history_faults
from turnout.testing.turns import Call, Fault, Refusal, Turn, completion, dump, stream_chunks

__all__ = [
    "Answer",
    "Call",
    "Fault",
    "RecordedRequest",
    "Refusal",
    "Script",
    "ScriptedModelServer",
    "Turn",
    "refusing_base_url",
]

Answer = Turn | Refusal

Script = Sequence[Answer] | Callable[[RecordedRequest], Answer]
"""One answer a request, in order; or what decides the answer to each."""

_OVERSIZE = 33 * 2**20


@contextmanager
def refusing_base_url() -> Iterator[str]:
    """Yield a base URL at which every connection is refused."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}/v1"


class ScriptedModelServer(LoopbackServer):
    """An OpenAI-compatible server on a free loopback port, alive inside `async with`.

    A mapping gives each model its own script and answers 404 for any other. A script that has
    run out answers 400 with the code `script_exhausted`. A request whose history breaks the
    rules of tool calls is answered 400, as real servers do, and noted in `history_faults`.
    Requests that probe for tool support do not use up the script: they are answered by
    `obedient` and kept in `probes`, unless `answers_probes` is False.
    """

    def __init__(
        self,
        script: Script | Mapping[str, Script] = (),
        *,
        models: Sequence[str] = (),
        api_key: str = "",
        answers_probes: bool = True,
    ) -> None:
        super().__init__()
        self.requests: list[RecordedRequest] = []
        """Every chat request, in the order of arrival; probes apart."""
        self.probes: list[RecordedRequest] = []
        self.history_faults: list[str] = []
        """What was wrong with the conversations received; empty is what a test wants."""
        self._scripts = script if isinstance(script, Mapping) else {"": script}
        self._per_model = isinstance(script, Mapping)
        self._used = dict.fromkeys(self._scripts, 0)
        self._models = tuple(models) or tuple(name for name in self._scripts if name)
        self._api_key = api_key
        self._answers_probes = answers_probes
        self._served = 0

    def _routes(self) -> Sequence[web.RouteDef]:
        return (
            web.post("/v1/chat/completions", self._chat),
            web.get("/v1/models", self._list_models),
        )

    async def _list_models(self, request: web.Request) -> web.StreamResponse:
        if not self._admits(request):
            return refuse(_WRONG_KEY)
        listed = [{"id": name, "object": "model"} for name in self._models]
        return web.json_response({"object": "list", "data": listed})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        recorded = RecordedRequest(headers, json.loads(await request.read()))
        answer = self._answer(recorded) if self._admits(request) else _WRONG_KEY
        self._served += 1
        try:
            if isinstance(answer, Refusal):
                return refuse(answer)
            if answer.until is not None:
                await answer.until.wait()
            if answer.delay:
                await asyncio.sleep(answer.delay)
            return await self._serve(request, recorded, answer)
        except (asyncio.CancelledError, ConnectionError):
            recorded.closed.set()
            raise

    def _admits(self, request: web.Request) -> bool:
        wanted = f"Bearer {self._api_key}"
        return not self._api_key or request.headers.get("authorization") == wanted

    def _answer(self, request: RecordedRequest) -> Answer:
        if self._answers_probes and request.is_probe:
            self.probes.append(request)
            return obedient(request)
        self.requests.append(request)
        if faults := history_faults(request.messages):
            self.history_faults += faults
            return Refusal(400, "; ".join(faults), "invalid_request_error")
        name = request.model if self._per_model else ""
        if name not in self._scripts:
            return Refusal(404, f"The model {name!r} does not exist.", "model_not_found")
        script = self._scripts[name]
        if not isinstance(script, Sequence):
            return script(request)
        at, self._used[name] = self._used[name], self._used[name] + 1
        if at >= len(script):
            return Refusal(400, "The script has no turn left.", "script_exhausted")
        return script[at]

    async def _serve(
        self, request: web.Request, recorded: RecordedRequest, turn: Turn
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
            case _ if recorded.stream:
                return await self._stream(request, recorded, turn)
            case _:
                return await self._whole(request, recorded, turn)

    async def _whole(
        self, request: web.Request, recorded: RecordedRequest, turn: Turn
    ) -> web.StreamResponse:
        body = dump(completion(turn, recorded.model, self._served)).encode()
        kind = "text/plain" if turn.fault == "content_type" else "application/json"
        match turn.fault:
            case "error_in_band":
                return web.json_response(_IN_BAND)
            case "bad_json":
                return web.Response(body=body[:-5], content_type=kind)
            case "oversized":
                return web.Response(body=body + b" " * _OVERSIZE, content_type=kind)
            case "cut" | "stall_midway" | "reset_after_headers" | "drip" | "no_end":
                response = web.StreamResponse(headers={"Content-Type": kind})
                response.content_length = len(body) + (turn.fault == "no_end")
                await response.prepare(request)
                await self._fail_midway(request, response, [body[:20], body[20:]], turn)
                return response
            case _:
                return web.Response(body=body, content_type=kind)

    async def _stream(
        self, request: web.Request, recorded: RecordedRequest, turn: Turn
    ) -> web.StreamResponse:
        kind = "text/plain" if turn.fault == "content_type" else "text/event-stream"
        response = web.StreamResponse(headers={"Content-Type": kind})
        await response.prepare(request)
        usage = recorded.wants_usage
        chunks = list(stream_chunks(turn, recorded.model, self._served, usage=usage))
        lines = [b"data: " + dump(chunk).encode() + b"\n\n" for chunk in chunks]
        if turn.fault not in {"no_done", "no_end"}:
            lines.append(b"data: [DONE]\n\n")
        middle = max(1, _place_of_finish(chunks) - 1)
        match turn.fault:
            case "bad_json":
                lines.insert(middle, b'data: {"id": oops\n\n')
            case "error_in_band":
                lines[middle:] = [b"data: " + dump(_IN_BAND).encode() + b"\n\n"]
            case "oversized":
                lines[middle] = lines[middle].replace(b"data: ", b"data: " + b" " * _OVERSIZE)
            case "cut" | "stall_midway" | "reset_after_headers" | "drip" | "no_end":
                parts = [b"".join(lines[:middle]), b"".join(lines[middle:])]
                await self._fail_midway(request, response, parts, turn)
                return response
            case _:
                pass
        for at, line in enumerate(lines):
            if turn.pause and at:
                await asyncio.sleep(turn.pause)
            await response.write(line)
        await response.write_eof()
        return response

    async def _fail_midway(
        self,
        request: web.Request,
        response: web.StreamResponse,
        parts: Sequence[bytes],
        turn: Turn,
    ) -> None:
        if turn.fault == "drip":
            for byte in b"".join(parts):
                await response.write(bytes([byte]))
                await asyncio.sleep(turn.pause)
            await response.write_eof()
            return
        if turn.fault == "reset_after_headers":
            reset(request)
            return
        await response.write(parts[0] if turn.fault != "no_end" else b"".join(parts))
        if turn.fault in {"stall_midway", "no_end"}:
            await self._stopping.wait()
        elif request.transport is not None:
            request.transport.close()


_WRONG_KEY = Refusal(401, "Incorrect API key provided.", "invalid_api_key")
_IN_BAND: JsonObject = {
    "error": {"message": "overloaded by script", "type": "overloaded_error", "code": 503}
}


def _place_of_finish(chunks: Sequence[JsonObject]) -> int:
    return next(at for at, chunk in enumerate(chunks) if 'finish_reason": "' in dump(chunk))
