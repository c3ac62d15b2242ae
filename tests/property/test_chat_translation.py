"""What a conversation says survives the chat shape: text, calls, results, order and ids."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import orjson
from hypothesis import given
from hypothesis import strategies as st

from turnout.core.ids import RequestId, ToolCallId
from turnout.core.usage import Usage
from turnout.gateway.dialog.conversation import (
    Call,
    Conversation,
    Media,
    Reasoning,
    Result,
    Sampling,
    Schema,
    Text,
    ToolSpec,
    Turn,
)
from turnout.gateway.dialog.events import AnswerPart, Ending, Piece, Reply
from turnout.gateway.dialog.fold import events_of
from turnout.gateway.exchange import Completion, ServerEvent, StreamDelta, StreamEnd
from turnout.gateway.providers.sse import SseDecoder
from turnout.gateway.wire.chat import ChatShape
from turnout.testing.exchange import PLAIN_REQUEST, REPORT, deployment

SHAPE = ChatShape()
THINKS = replace(deployment("acme/m"), reasoning_back=True)
WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=9)
TEXTS = st.builds(Text, WORDS)
IMAGES = st.builds(Media, st.just("image"), st.just("data:image/png;base64,AA"))
OBJECTS = st.dictionaries(WORDS, WORDS | st.integers(-99, 99), max_size=3)


@st.composite
def _loops(draw: st.DrawFn, at: int) -> list[Turn]:
    """Return a question, an answer with calls, and their results."""
    ids = [ToolCallId(f"c{at}_{n}") for n in range(draw(st.integers(1, 3)))]
    said: list[Text | Reasoning | Call] = []
    if draw(st.booleans()):
        said.append(Reasoning(draw(WORDS)))
    if draw(st.booleans()):
        said.append(draw(TEXTS))
    arguments = [orjson.dumps(draw(OBJECTS)).decode() for _ in ids]
    said += [Call(i, draw(WORDS), text) for i, text in zip(ids, arguments, strict=True)]
    asked = draw(st.lists(TEXTS | IMAGES, min_size=1, max_size=3))
    results = tuple(Result(i, (draw(TEXTS),)) for i in ids)
    return [Turn("user", tuple(asked)), Turn("assistant", tuple(said)), Turn("user", results)]


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    """Return a conversation that the chat shape can say in full."""
    turns = [Turn("system", (draw(TEXTS),))] if draw(st.booleans()) else []
    for at in range(draw(st.integers(0, 2))):
        turns += draw(_loops(at))
    turns.append(Turn("user", (draw(TEXTS),)))
    names = draw(st.lists(WORDS, max_size=3, unique=True))
    choices = ["auto", "required", "none", *names] if names else ["auto"]
    tools = tuple(ToolSpec(name, draw(WORDS), {"type": "object"}) for name in names)
    return Conversation(
        tuple(turns),
        tools,
        tool_choice=draw(st.sampled_from(choices)),
        sampling=Sampling(
            max_tokens=draw(st.none() | st.integers(1, 9)), stop=tuple(draw(st.lists(WORDS)))
        ),
        schema=draw(st.none() | st.builds(Schema, WORDS, st.just({"type": "object"}))),
    )


@given(conversations())
def test_a_conversation_comes_back_from_the_chat_shape_as_it_was(said: Conversation) -> None:
    """Nothing is lost, moved or renamed."""
    asked = replace(PLAIN_REQUEST, shape="messages")
    body = SHAPE.prepare(asked, THINKS, said)
    again = SHAPE.conversation(SHAPE.parse(orjson.dumps(body), {}))
    assert _plain(again) == _plain(said)


PARTS = st.lists(
    TEXTS
    | st.builds(Reasoning, WORDS)
    | st.builds(
        Call,
        st.uuids().map(lambda u: ToolCallId(str(u))),
        WORDS,
        OBJECTS.map(lambda o: orjson.dumps(o).decode()),
    ),
    max_size=5,
)


def _merged(parts: Sequence[AnswerPart]) -> list[AnswerPart]:
    """Return the parts as a message of the shape holds them: thought, text, then calls."""
    thought = "".join(p.text for p in parts if isinstance(p, Reasoning))
    text = "".join(p.text for p in parts if isinstance(p, Text))
    calls = [p for p in parts if isinstance(p, Call)]
    told: list[AnswerPart] = [Reasoning(thought)] if thought else []
    return [*told, *([Text(text)] if text else []), *calls]


@given(PARTS, st.sampled_from(["stop", "length"]))
def test_an_answer_of_another_shape_is_read_back_as_it_was(
    parts: list[AnswerPart], finish: Literal["stop", "length"]
) -> None:
    """Written for a client of this shape, streamed and whole, it means what the model said."""
    ended = "tool_calls" if any(isinstance(p, Call) for p in parts) else finish
    writer = SHAPE.writer(PLAIN_REQUEST, RequestId("req-1"))
    raw = b"".join(
        writer.piece(StreamDelta(Piece((event,)), REPORT.model)) for event in events_of(parts)
    )
    raw += writer.end(StreamEnd(Ending(ended), Usage(1, 2), REPORT))
    reader = SHAPE.reader(PLAIN_REQUEST, THINKS)
    for event in SseDecoder().feed(raw):
        if event.data != "[DONE]":
            reader.read(ServerEvent("", orjson.loads(event.data)))
    assert (reader.end().finish, reader.repairs) == (ended, ())
    assert _merged(reader.so_far().parts) == _merged(parts)
    whole = Completion(Reply(tuple(parts), ended), None, Usage(1, 2), REPORT)
    body = orjson.loads(SHAPE.write(whole, PLAIN_REQUEST, RequestId("req-1")))
    read = SHAPE.read(body, PLAIN_REQUEST, THINKS)
    assert (list(read.reply.parts), read.repairs) == (_merged(parts), ())
    assert read.reply.usage == Usage(1, 2)


def _plain(said: Conversation) -> Conversation:
    """Return a conversation without the empty thoughts that such deployments are told."""
    turns = tuple(
        replace(turn, parts=tuple(part for part in turn.parts if part != Reasoning("")))
        for turn in said.turns
    )
    return replace(said, turns=turns)
