"""Whatever a client or an upstream says in the messages shape, nothing of it is lost or bent."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from turnout.core.ids import ModelId, RequestId, ToolCallId
from turnout.core.usage import Usage
from turnout.errors import GatewayError
from turnout.gateway.dialog.conversation import (
    Call,
    Conversation,
    Media,
    Part,
    Reasoning,
    Result,
    Sampling,
    Schema,
    Text,
    ToolSpec,
    Turn,
)
from turnout.gateway.dialog.events import (
    AnswerPart,
    CallDelta,
    CallOpened,
    Ending,
    Event,
    Piece,
    Reply,
)
from turnout.gateway.dialog.fold import events_of, fold_events
from turnout.gateway.exchange import Completion, ServerEvent, StreamDelta, StreamEnd, UpstreamError
from turnout.gateway.wire.messages import MessagesShape
from turnout.gateway.wire.messages.reader import MessagesReader
from turnout.gateway.wire.messages.usage import read_usage, write_usage
from turnout.testing.exchange import PLAIN_REQUEST, REPORT, deployment

SHAPE = MessagesShape()
DEPLOYMENT = deployment("p/m")
ID = RequestId("req-1")
ASKED = replace(PLAIN_REQUEST, shape="messages", thinking=True)

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=9).filter(
    lambda text: bool(text.strip())
)
NAMES = st.sampled_from(["read_file", "write_file"])
SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | WORDS
JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=9,
)
OBJECTS = st.dictionaries(WORDS, JSON, max_size=3)
ARGUMENTS = OBJECTS.map(lambda value: orjson.dumps(value).decode())
IMAGES = st.sampled_from(["data:image/png;base64,aGk=", "https://example.org/a.png"]).map(
    lambda url: Media("image", url)
)
FILES = st.just(Media("file", "data:application/pdf;base64,aGk=", "a.pdf"))


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    """Return a conversation that agents have: every call is answered in the next turn."""
    turns: list[Turn] = []
    if draw(st.booleans()):
        turns.append(
            Turn("system", tuple(map(Text, draw(st.lists(WORDS, min_size=1, max_size=2)))))
        )
    number = 0
    asked = st.lists(WORDS.map(Text) | IMAGES | FILES, min_size=1, max_size=2)
    turns.append(Turn("user", tuple(draw(asked))))
    for _ in range(draw(st.integers(0, 3))):
        parts: list[Part] = []
        if draw(st.booleans()):
            parts.append(Reasoning(draw(WORDS), draw(WORDS)))
        if draw(st.booleans()):
            parts.append(Text(draw(WORDS)))
        results: list[Part] = []
        for _ in range(draw(st.integers(0, 2))):
            number += 1
            call_id = ToolCallId(f"call_{number}")
            parts.append(Call(call_id, draw(NAMES), draw(ARGUMENTS)))
            inner = tuple(draw(st.lists(WORDS.map(Text) | IMAGES, max_size=2)))
            results.append(Result(call_id, inner, is_error=draw(st.booleans())))
        if not any(isinstance(part, Text | Call) for part in parts):
            parts.append(Text(draw(WORDS)))
        turns.append(Turn("assistant", tuple(parts)))
        if draw(st.booleans()) or not results:
            results.append(Text(draw(WORDS)))
        turns.append(Turn("user", tuple(results)))
    return Conversation(
        turns=tuple(turns),
        tools=tuple(
            ToolSpec(name, draw(st.sampled_from(["", "What it does."])), {"type": "object"})
            for name in ("read_file", "write_file")
        ),
        tool_choice=draw(st.sampled_from(["auto", "required", "none", "read_file"])),
        sampling=Sampling(
            max_tokens=draw(st.integers(1, 99)),
            temperature=draw(st.none() | st.floats(0, 1)),
            stop=tuple(draw(st.lists(WORDS, max_size=2))),
        ),
        schema=draw(st.none() | st.just(Schema("answer", {"type": "object"}, strict=True))),
        end_user=draw(st.none() | st.just("somebody")),
    )


@given(conversations())
def test_a_conversation_written_and_read_is_the_same(said: Conversation) -> None:
    """Text, media, calls with ids and arguments, results, thoughts, their order and the rest."""
    thinker = replace(DEPLOYMENT, reasoning_back=True)
    body = SHAPE.prepare(PLAIN_REQUEST, thinker, said)
    parsed = SHAPE.parse(orjson.dumps(body), {})
    assert SHAPE.conversation(parsed) == said
    calls = [part.id for turn in said.turns for part in turn.parts if isinstance(part, Call)]
    assert list(parsed.past_calls) == calls
    assert SHAPE.prepare(PLAIN_REQUEST, thinker, said) == body


ANSWERS = st.lists(
    st.builds(Text, WORDS)
    | st.builds(Reasoning, WORDS, WORDS)
    | st.builds(Call, st.uuids().map(lambda u: ToolCallId(u.hex)), NAMES, ARGUMENTS),
    max_size=5,
).filter(
    lambda parts: not any(isinstance(a, Text) and isinstance(b, Text) for a, b in pairwise(parts))
)


@st.composite
def shuffled_events(draw: st.DrawFn, parts: Sequence[AnswerPart]) -> list[Event]:
    """Return the events of an answer whose calls, once begun, take turns."""
    events: list[Event] = []
    deltas: list[CallDelta] = []
    for event in events_of(parts):
        if isinstance(event, CallDelta):
            cut = draw(st.integers(0, len(event.arguments)))
            halves = (event.arguments[:cut], event.arguments[cut:])
            deltas.extend(CallDelta(event.index, half) for half in halves if half)
            continue
        if not isinstance(event, CallOpened):
            events.extend(deltas)
            deltas = []
        events.append(event)
    by_call: dict[int, list[CallDelta]] = {}
    for delta in deltas:
        by_call.setdefault(delta.index, []).append(delta)
    while by_call:
        chosen = draw(st.sampled_from(sorted(by_call)))
        events.append(by_call[chosen].pop(0))
        if not by_call[chosen]:
            del by_call[chosen]
    return events


def _events(written: bytes) -> Iterator[ServerEvent]:
    for block in written.decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n") if line)
        if lines:
            data = orjson.loads(lines["data"])
            assert lines["event"] == data["type"]
            yield ServerEvent(lines["event"], data)


def _assert_nested(events: Sequence[ServerEvent]) -> None:
    """Fail unless each block is begun, grows and is closed before the next one begins."""
    names = [event.name for event in events]
    assert names[0] == "message_start"
    assert names[-2:] == ["message_delta", "message_stop"]
    opened, place = False, 0
    for event in events[1:-2]:
        assert event.data["index"] == place
        match event.name:
            case "content_block_start":
                assert not opened
                opened = True
            case "content_block_delta":
                assert opened
            case _:
                assert event.name == "content_block_stop"
                assert opened
                opened, place = False, place + 1
    assert not opened


@given(ANSWERS, st.data())
def test_a_stream_written_and_read_is_the_same(
    parts: list[AnswerPart], data: st.DataObject
) -> None:
    """Blocks are strictly nested, however the calls took turns; nothing is lost or doubled."""
    events = data.draw(shuffled_events(parts))
    called = any(isinstance(part, Call) for part in parts)
    writer = SHAPE.writer(ASKED, ID)
    written = b"".join(writer.piece(StreamDelta(Piece((event,)), ModelId("m"))) for event in events)
    finish = "tool_calls" if called else "stop"
    written += writer.end(StreamEnd(Ending(finish), Usage(7, 3), REPORT))
    sent = list(_events(written))
    _assert_nested(sent)
    reader = MessagesReader(ModelId("m"))
    pieces = [piece for event in sent for piece in reader.read(event)]
    ending = reader.end()
    assert ending.finish == finish
    assert reader.usage == Usage(7, 3)
    assert reader.repairs == ()
    assert reader.so_far().parts == tuple(parts)
    assert fold_events(e for p in (*pieces, *ending.pieces) for e in p.events) == tuple(parts)


@given(ANSWERS)
def test_an_answer_written_and_read_is_the_same(parts: list[AnswerPart]) -> None:
    """Whole, as streamed."""
    called = any(isinstance(part, Call) for part in parts)
    reply = Reply(tuple(parts), "tool_calls" if called else "stop", Usage(7, 3))
    body = orjson.loads(SHAPE.write(Completion(reply, None, Usage(7, 3), REPORT), ASKED, ID))
    read = SHAPE.read(body, ASKED, DEPLOYMENT)
    assert read.reply == reply
    assert read.repairs == ()


@given(ANSWERS, st.booleans())
def test_an_upstreams_own_events_reach_a_client_as_they_came(
    parts: list[AnswerPart], thinking: bool
) -> None:
    """Only id, model, usage and `routing` are the gateway's."""
    called = any(isinstance(part, Call) for part in parts)
    upstream = SHAPE.writer(ASKED, RequestId("msg-1"))
    written = b"".join(
        upstream.piece(StreamDelta(Piece((event,)), ModelId("theirs")))
        for event in events_of(parts)
    )
    finish = "tool_calls" if called else "stop"
    written += upstream.end(StreamEnd(Ending(finish), Usage(7, 3), REPORT))
    sent = list(_events(written))
    reader = MessagesReader(ModelId("m"))
    writer = SHAPE.writer(replace(ASKED, thinking=thinking), ID)
    passed = b"".join(
        writer.piece(StreamDelta(piece, ModelId("m")))
        for event in sent
        for piece in reader.read(event)
    )
    passed += writer.end(StreamEnd(reader.end(), Usage(7, 3), REPORT))
    received = list(_events(passed))
    assert [e.data for e in received[1:-2]] == [e.data for e in sent[1:-2]]
    message: Any = received[0].data["message"]
    assert (message["id"], message["model"]) == (ID, "m")
    delta = received[-2].data
    assert {k: delta[k] for k in ("delta", "usage", "routing")} == {
        k: sent[-2].data[k] for k in ("delta", "usage", "routing")
    }


NOISE = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(
            ["message_start", "content_block_start", "content_block_delta", "message_delta", "x"]
        )
        | JSON,
        "index": JSON,
        "message": JSON,
        "content_block": JSON
        | st.fixed_dictionaries({"type": st.sampled_from(["text", "tool_use", "thinking"])}),
        "delta": JSON
        | st.fixed_dictionaries(
            {
                "type": st.sampled_from(["text_delta", "input_json_delta", "signature_delta"]),
                "text": JSON,
            }
        ),
        "usage": JSON,
        "content": JSON,
    },
)


@given(st.lists(NOISE, max_size=6))
def test_no_event_breaks_the_reader(events: list[dict[str, Any]]) -> None:
    """An upstream's nonsense is its own failure, never ours."""
    reader, writer = MessagesReader(ModelId("m")), SHAPE.writer(ASKED, ID)
    try:
        for event in events:
            for piece in reader.read(ServerEvent("", event)):
                writer.piece(StreamDelta(piece, ModelId("m")))
        writer.end(StreamEnd(reader.end(), Usage(), REPORT))
    except UpstreamError:
        pass
    reader.so_far()


@given(NOISE)
def test_no_body_breaks_the_reading_of_an_answer(body: dict[str, Any]) -> None:
    """As with events."""
    with suppress(UpstreamError):
        SHAPE.read(body, ASKED, DEPLOYMENT)


BODIES = st.fixed_dictionaries(
    {"model": st.just("auto")},
    optional={
        "messages": st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "role": st.sampled_from(["user", "assistant", "system"]) | JSON,
                    "content": JSON
                    | st.lists(
                        st.fixed_dictionaries(
                            {
                                "type": st.sampled_from(
                                    ["text", "image", "tool_use", "tool_result", "document", "x"]
                                )
                            },
                            optional={
                                "text": JSON,
                                "id": WORDS,
                                "name": WORDS,
                                "tool_use_id": WORDS,
                                "input": JSON,
                                "source": JSON
                                | st.fixed_dictionaries(
                                    {
                                        "type": st.sampled_from(["base64", "url", "text", "x"]),
                                        "data": JSON,
                                    }
                                ),
                                "content": JSON,
                                "cache_control": JSON,
                            },
                        ),
                        max_size=2,
                    ),
                },
            ),
            max_size=3,
        ),
        "system": JSON,
        "tools": JSON,
        "tool_choice": JSON,
        "max_tokens": JSON,
        "thinking": JSON,
        "output_config": JSON,
        "metadata": JSON,
        "stop_sequences": JSON,
    },
)


def _refusal(body: dict[str, Any]) -> GatewayError | None:
    try:
        request = replace(SHAPE.parse(orjson.dumps(body), {}), caching=True)
        said = SHAPE.conversation(request)
        marked = replace(DEPLOYMENT, caching="marks")
        orjson.dumps(SHAPE.prepare(request, marked, None))
        orjson.dumps(SHAPE.prepare(request, marked, said))
    except GatewayError as error:
        return error
    return None


@given(BODIES)
def test_any_request_is_served_or_refused(body: dict[str, Any]) -> None:
    """Nothing a client sends becomes an error of ours, in its own shape or another."""
    refusal = _refusal(body)
    assert refusal is None or (refusal.status == 400 and refusal.message)


EXTRAS = st.dictionaries(WORDS.map("x_{}".format), JSON, max_size=3)


@given(EXTRAS, EXTRAS, EXTRAS)
def test_a_request_keeps_every_field_that_is_not_ours(
    top: dict[str, Any], message: dict[str, Any], tool: dict[str, Any]
) -> None:
    """At every level, with its exact value and in its place, up to an upstream of its shape."""
    body = {
        "model": "auto",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "x", **message}],
        "tools": [{"name": "f", "input_schema": {}, **tool}],
        **top,
    }
    sent = {**body, "routing": {"optimize": "cost"}, "extended_thinking": True}
    request = SHAPE.parse(orjson.dumps(sent), {})
    assert request.body == body
    prepared = SHAPE.prepare(request, DEPLOYMENT, None)
    assert orjson.dumps(prepared) == orjson.dumps({**body, "model": "m"})


@given(st.integers(0, 9999), st.integers(0, 9999), st.integers(0, 9999), st.integers(0, 9999))
def test_counts_written_and_read_are_the_same(
    fresh: int, read: int, written: int, output: int
) -> None:
    """Our input counts hold what a cache read or wrote, those of this shape do not."""
    usage = Usage(fresh + read + written, output, read, written)
    assert write_usage(usage)["input_tokens"] == fresh
    assert read_usage(write_usage(usage)) == usage
