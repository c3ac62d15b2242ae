"""Scripted upstreams of every shape, and the ways in which each of them goes wrong."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from turnout.core.json import JsonObject
from turnout.core.usage import Usage
from turnout.gateway.dialog.conversation import Shape
from turnout.testing.messages import (
    MessagesRefusal,
    MessagesTurn,
    ScriptedMessagesServer,
    text,
    tool_use,
)
from turnout.testing.model_server import Call, Refusal, ScriptedModelServer, Turn
from turnout.testing.responses import ResponsesTurn, ScriptedResponsesServer, called, said

__all__ = [
    "CALL",
    "FAULTS",
    "TEXT",
    "UPSTREAMS",
    "USED",
    "Answer",
    "Asked",
    "Fault",
    "Outcome",
    "Server",
    "Upstream",
    "answer",
    "outcome",
    "refusal",
    "server_of",
    "slow",
]

Upstream = Shape
UPSTREAMS: tuple[Upstream, ...] = ("chat", "messages", "responses")
Server = ScriptedModelServer | ScriptedMessagesServer | ScriptedResponsesServer
Answer = Turn | Refusal | MessagesTurn | MessagesRefusal | ResponsesTurn
Outcome = Literal["right", "error", "breaks"]
"""right: the whole answer. error: nothing was seen, so it is an error response. breaks: a stream
has begun and ends in an error in band; a whole answer is an error response."""

TEXT = "one two three four five six seven 北京🙂é"
PATH = "a/path/that/is/long/enough/to/come/in/several/pieces.py"
CALL: tuple[str, JsonObject] = ("read_file", {"path": PATH})
USED = Usage(input_tokens=100, output_tokens=20)

Fault = Literal[
    "reset before headers",
    "reset after headers",
    "cut in the text",
    "cut in a call",
    "silent",
    "silent midway",
    "payment",
    "failing",
    "page",
    "bad line",
    "no end mark",
    "error in band",
    "counts twice",
    "slow drip",
    "content type",
    "oversized",
]
FAULTS: tuple[Fault, ...] = get_args(Fault)
"""Beside them: nobody listens, and every form of a rate limit."""

_NAMES: dict[Fault, str] = {
    "reset before headers": "reset",
    "reset after headers": "reset_after_headers",
    "cut in the text": "cut",
    "cut in a call": "cut",
    "silent": "stall",
    "silent midway": "stall_midway",
    "page": "html",
    "bad line": "bad_json",
    "error in band": "error_in_band",
    "counts twice": "usage_twice",
    "slow drip": "drip",
    "content type": "content_type",
    "oversized": "oversized",
}
_END_MARKS: dict[Upstream, str] = {
    "chat": "no_done",
    "messages": "no_stop",
    "responses": "no_completed",
}
_RIGHT = {"no end mark", "counts twice", "slow drip", "content type"}
_UNSEEN = {"reset before headers", "reset after headers", "silent", "payment", "failing", "page"}


@dataclass(frozen=True)
class Asked:
    """What a script sees of a request, whatever its shape."""

    model: str
    stream: bool
    body: JsonObject
    number: int
    """0, 1, … in the order of arrival."""


def outcome(upstream: Upstream, fault: Fault, *, stream: bool) -> Outcome:
    """Return what a client is to make of a fault."""
    if fault in _UNSEEN:
        return "error"
    if fault == "no end mark" and upstream == "responses" and stream:
        # Its end mark alone holds the counts and the status.
        return "breaks"
    if fault in _RIGHT:
        return "right"
    return "breaks" if stream else "error"


def answer(upstream: Upstream, fault: Fault | None = None, *, calls: bool = True) -> Answer:
    """Return text and a call, or what is left of them; `calls` False: text alone."""
    if fault == "payment":
        return refusal(upstream, 402, "pay first")
    if fault == "failing":
        return refusal(upstream, 500, "try later")
    has_text, has_call = fault != "cut in a call", calls and fault != "cut in the text"
    name = _END_MARKS[upstream] if fault == "no end mark" else _NAMES[fault] if fault else None
    kind: Any = name
    match upstream:
        case "chat":
            made = (Call(*CALL),) if has_call else ()
            return Turn(TEXT if has_text else "", made, usage=USED, fault=kind)
        case "messages":
            blocks = [text(TEXT)] if has_text else []
            blocks += [tool_use(*CALL, "toolu_1")] if has_call else []
            return MessagesTurn(tuple(blocks), fault=kind)
        case "responses":
            items = [said(TEXT)] if has_text else []
            arguments = f'{{"path": "{PATH}"}}'
            items += [called(CALL[0], arguments, "call_up_1")] if has_call else []
            return ResponsesTurn(tuple(items), usage=USED, fault=kind)


def slow(upstream: Upstream, pause: float) -> Answer:
    """Return a long text that comes piece by piece."""
    words = TEXT * 20
    match upstream:
        case "chat":
            return Turn(words, pause=pause)
        case "messages":
            return MessagesTurn((text(words),), pause=pause)
        case "responses":
            return ResponsesTurn((said(words),), pause=pause)


def refusal(
    upstream: Upstream, status: int, words: str, headers: dict[str, str] | None = None
) -> Answer:
    """Return an answer with an error status, in the upstream's own shape."""
    if upstream == "messages":
        return MessagesRefusal(status, said=words, headers=headers or {})
    return Refusal(status, words, headers=headers or {})


def server_of(upstream: Upstream, script: Callable[[Asked], Answer]) -> Server:
    """Return a server of that shape which answers as the script says."""
    arrived: list[object] = []

    def respond(request: Any) -> Any:
        arrived.append(request)
        body = request.body
        model, stream = str(body.get("model")), body.get("stream") is True
        return script(Asked(model, stream, body, len(arrived) - 1))

    match upstream:
        case "chat":
            return ScriptedModelServer(respond, answers_probes=False)
        case "messages":
            return ScriptedMessagesServer(respond)
        case "responses":
            return ScriptedResponsesServer(respond)
