"""What a model of any shape answers, a client of any shape hears, whole and streamed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any, Literal

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.core.ids import RequestId, ToolCallId
from turnout.core.json import JsonObject
from turnout.core.usage import Usage
from turnout.gateway.dialog.conversation import Call, Shape, Text
from turnout.gateway.dialog.events import AnswerPart, Ending, Reply
from turnout.gateway.exchange import (
    Completion,
    InferenceRequest,
    ServerEvent,
    StreamDelta,
    StreamEnd,
)
from turnout.gateway.providers.sse import SseDecoder
from turnout.gateway.wire.base import StreamReader
from turnout.gateway.wire.shapes import HEARD, SPOKEN
from turnout.testing import turns as chat
from turnout.testing.exchange import REPORT, deployment
from turnout.testing.messages import turns as messages
from turnout.testing.responses import turns as responses

SHAPES: tuple[Shape, ...] = ("chat", "messages", "responses")
PAIRS = list(product(SHAPES, SHAPES))
BY = deployment("p/m")
ID = RequestId("req-00112233445566aa")
USED = Usage(input_tokens=1_000, output_tokens=50, cache_read_input_tokens=900)

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30).filter(
    lambda text: bool(text.strip())
)
NAMES = ("read_file", "run-tests", "a_b")
OBJECTS = st.dictionaries(WORDS, WORDS | st.integers(-(2**53), 2**53) | st.booleans(), max_size=3)
Stop = Literal["stop", "length"]


@dataclass(frozen=True)
class Said:
    """An answer as the model means it."""

    parts: tuple[Text | Call, ...]
    stop: Stop

    @property
    def calls(self) -> bool:
        """Whether it calls tools."""
        return any(isinstance(part, Call) for part in self.parts)


@st.composite
def answers(draw: st.DrawFn) -> Said:
    """Return texts and calls in any order; no text follows another one."""
    parts: list[Text | Call] = []
    for at, is_call in enumerate(draw(st.lists(st.booleans(), min_size=1, max_size=5))):
        if is_call:
            arguments = orjson.dumps(draw(OBJECTS)).decode()
            parts.append(Call(ToolCallId(f"call_{at}_x"), draw(st.sampled_from(NAMES)), arguments))
        elif not parts or isinstance(parts[-1], Call):
            parts.append(Text(draw(WORDS)))
    stop: Stop = draw(st.sampled_from(["stop", "length"]))
    said = Said(tuple(parts), stop)
    return replace(said, stop="stop") if said.calls else said


def asked(shape: Shape, *, stream: bool) -> InferenceRequest:
    """Return a question with the tools declared, as a client of that shape puts it."""
    question = {"role": "user", "content": "Hi"}
    form = {"type": "object", "properties": {}}
    body: dict[str, Any] = {"model": "auto", "stream": stream}
    match shape:
        case "chat":
            tools: Any = [{"name": name, "parameters": form} for name in NAMES]
            tools = [{"type": "function", "function": tool} for tool in tools]
            body |= {"messages": [question]}
        case "messages":
            tools = [{"name": name, "input_schema": form} for name in NAMES]
            body |= {"messages": [question], "max_tokens": 99}
        case "responses":
            tools = [{"type": "function", "name": name, "parameters": form} for name in NAMES]
            body |= {"input": [question]}
    return HEARD[shape].parse(orjson.dumps({**body, "tools": tools}), {})


def sent(request: InferenceRequest, upstream: Shape) -> InferenceRequest:
    """Return the request as it is when the upstream's answer is read."""
    if request.shape == upstream:
        return request
    told = HEARD[request.shape].conversation(request)
    return replace(request, body=SPOKEN[upstream].prepare(request, BY, told))


def in_chat(said: Said) -> chat.Turn:
    """Return the answer as a server of the shape has it: text first, then the calls."""
    text = "".join(part.text for part in said.parts if isinstance(part, Text))
    calls = [p for p in said.parts if isinstance(p, Call)]
    made = tuple(chat.Call(call.name, call.arguments, call.id) for call in calls)
    return chat.Turn(text, made, usage=USED, finish_reason=None if said.calls else said.stop)


def in_messages(said: Said) -> messages.MessagesTurn:
    """Return the answer as a server of the shape has it."""
    blocks = tuple(
        messages.text(part.text)
        if isinstance(part, Text)
        else messages.tool_use(part.name, orjson.loads(part.arguments), part.id)
        for part in said.parts
    )
    counts = {"input_tokens": 100, "output_tokens": 50, "cache_read_input_tokens": 900}
    return messages.MessagesTurn(
        blocks, counts, stop_reason="max_tokens" if said.stop == "length" else None
    )


def in_responses(said: Said) -> responses.ResponsesTurn:
    """Return the answer as a server of the shape has it."""
    items = tuple(
        responses.said(part.text)
        if isinstance(part, Text)
        else responses.called(part.name, part.arguments, part.id)
        for part in said.parts
    )
    cut = "max_output_tokens" if said.stop == "length" else ""
    return responses.ResponsesTurn(items, USED, incomplete=cut)


def whole(shape: Shape, said: Said) -> JsonObject:
    """Return the body of an upstream's whole answer."""
    match shape:
        case "chat":
            return chat.completion(in_chat(said), "up", 1)
        case "messages":
            return messages.message(in_messages(said), "up", 1)
        case "responses":
            return responses.response(in_responses(said), "up", 1)


def streamed(shape: Shape, said: Said) -> Iterator[ServerEvent]:
    """Yield the events of an upstream's stream."""
    match shape:
        case "chat":
            for chunk in chat.stream_chunks(in_chat(said), "up", 1, usage=True):
                yield ServerEvent("", chunk)
        case "messages":
            for event in messages.events(in_messages(said), "up", 1):
                yield ServerEvent(event.name, event.data)
        case "responses":
            for data in responses.events(in_responses(said), "up", 1):
                yield ServerEvent(str(data["type"]), data)


def heard_whole(said: Said, upstream: Shape, client: Shape) -> Reply:
    """Return what a client makes of a whole answer."""
    request = asked(client, stream=False)
    read = SPOKEN[upstream].read(whole(upstream, said), sent(request, upstream), BY)
    assert read.repairs == ()
    assert read.reply.usage == USED
    completion = Completion(read.reply, read.native, USED, REPORT)
    body = orjson.loads(HEARD[client].write(completion, request, ID))
    assert (body["id"], body["model"]) == (ID, "m")
    return SPOKEN[client].read(body, request, BY).reply


def heard_streamed(said: Said, upstream: Shape, client: Shape) -> Reply:
    """Return what a client makes of a stream."""
    request = asked(client, stream=True)
    reader = SPOKEN[upstream].reader(sent(request, upstream), BY)
    writer = HEARD[client].writer(replace(request, include_usage=True), ID)
    raw = b""
    for event in streamed(upstream, said):
        for piece in reader.read(event):
            raw += writer.piece(StreamDelta(piece, REPORT.model))
    ending = reader.end()
    assert (reader.usage, reader.repairs) == (USED, ())
    for piece in ending.pieces:
        raw += writer.piece(StreamDelta(piece, REPORT.model))
    raw += writer.end(StreamEnd(ending, USED, REPORT))
    again = SPOKEN[client].reader(request, BY)
    ended = _read_all(again, raw)
    reply = again.so_far()
    assert reply.finish == ended.finish
    return replace(reply, usage=again.usage)


def _read_all(reader: StreamReader, raw: bytes) -> Ending:
    decoder = SseDecoder()
    for event in decoder.feed(raw):
        if event.data != "[DONE]":
            list(reader.read(ServerEvent(event.name, orjson.loads(event.data))))
    assert decoder.close() is None
    return reader.end()


def facts(parts: Sequence[AnswerPart], *, merged: bool) -> list[object]:
    """Return what is said, in order; `merged`: all text before all calls, as chat has it."""
    texts = [part.text for part in parts if isinstance(part, Text)]
    calls = [(p.id, p.name, orjson.loads(p.arguments)) for p in parts if isinstance(p, Call)]
    if merged:
        return ["".join(texts), *calls]
    rest = iter(calls)
    return [part.text if isinstance(part, Text) else next(rest) for part in parts]


@pytest.mark.parametrize(("upstream", "client"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
@pytest.mark.parametrize("hear", [heard_whole, heard_streamed], ids=["whole", "stream"])
@given(said=answers())
@settings(max_examples=60, deadline=None)
def test_an_answer_says_the_same_to_every_client(
    hear: Any, upstream: Shape, client: Shape, said: Said
) -> None:
    """Text, calls, their order, names, arguments and ids, how it ended, and what it used."""
    heard: Reply = hear(said, upstream, client)
    merged = "chat" in (upstream, client)
    assert facts(heard.parts, merged=merged) == facts(said.parts, merged=merged)
    assert heard.finish == ("tool_calls" if said.calls else said.stop)
    assert heard.usage == USED


@given(said=answers(), chain=st.lists(st.sampled_from(SHAPES), min_size=2, max_size=4))
@settings(max_examples=60, deadline=None)
def test_an_answer_survives_a_row_of_gateways(said: Said, chain: list[Shape]) -> None:
    """Gateways stand before gateways; none of them bends what the one before it said."""
    parts: Sequence[AnswerPart] = said.parts
    for upstream, client in pairwise(chain):
        told = Said(tuple(p for p in parts if isinstance(p, Text | Call)), said.stop)
        parts = heard_streamed(told, upstream, client).parts
    merged = "chat" in chain
    assert facts(parts, merged=merged) == facts(said.parts, merged=merged)
