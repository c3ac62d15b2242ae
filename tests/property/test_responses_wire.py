"""What is said in the responses shape is what was meant, there and back."""

from collections.abc import Iterator
from itertools import pairwise

import orjson
from hypothesis import given
from hypothesis import strategies as st

from turnout.core.ids import RequestId, ToolCallId
from turnout.core.inference import RoutingReport
from turnout.core.json import JsonObject
from turnout.core.usage import Usage
from turnout.gateway.dialog.conversation import (
    Call,
    Conversation,
    Media,
    Reasoning,
    Refusal,
    Result,
    Sampling,
    Schema,
    Text,
    ToolSpec,
    Turn,
)
from turnout.gateway.dialog.events import AnswerPart, Ending, Event, Piece, Reply
from turnout.gateway.dialog.fold import events_of, fold_events
from turnout.gateway.exchange import (
    Completion,
    InferenceRequest,
    ServerEvent,
    StreamDelta,
    StreamEnd,
)
from turnout.gateway.wire.responses import ResponsesShape
from turnout.gateway.wire.responses.body import write_conversation
from turnout.gateway.wire.responses.history import read_conversation
from turnout.testing.exchange import deployment

SHAPE = ResponsesShape()
ID = RequestId("req-00112233445566aa")
BY = deployment("p/m")
REPORT = RoutingReport(
    BY.model, BY.provider, BY.id, "cost", "general", "default", None, False, False, 1, "only", None
)

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
NAMES = st.sampled_from(["read_file", "apply_patch", "run", "a-b_c"])
TEXTS = st.builds(Text, WORDS)
IMAGES = st.builds(
    Media,
    st.just("image"),
    st.sampled_from(["https://example.org/a.png", "data:image/png;base64,AA=="]),
    detail=st.sampled_from(["auto", "low", "high"]),
)
SOUNDS = st.builds(Media, st.just("audio"), st.just("data:audio/mp3;base64,AA=="))
FILES = st.builds(
    Media,
    st.just("file"),
    st.sampled_from(["data:application/pdf;base64,AA==", "https://example.org/a.pdf"]),
    st.sampled_from(["", "a.pdf"]),
)
MEDIA = st.one_of(IMAGES, SOUNDS, FILES)


@st.composite
def exchanges(draw: st.DrawFn, number: int) -> list[Turn]:
    """Return what a user says, what the model answers, and the results of its calls."""
    asked = Turn("user", tuple(draw(st.lists(st.one_of(TEXTS, MEDIA), min_size=1, max_size=3))))
    calls = [
        Call(
            ToolCallId(f"call_{number}_{at}"),
            draw(NAMES),
            draw(WORDS if custom else st.sampled_from(["{}", '{"a":"ü\\n"}'])),
            "custom" if custom else "function",
        )
        for at, custom in enumerate(draw(st.lists(st.booleans(), max_size=3)))
    ]
    said = draw(st.lists(TEXTS, max_size=1 if calls else 2, min_size=0 if calls else 1))
    answer = Turn("assistant", (*said, *calls))
    results = tuple(
        Result(
            call.id,
            tuple(
                draw(
                    st.one_of(
                        st.lists(TEXTS, min_size=1, max_size=2),
                        st.lists(IMAGES, min_size=1, max_size=1),
                    )
                )
            ),
            draw(st.booleans()),
            call.type,
        )
        for call in calls
    )
    return [asked, answer, *([Turn("user", results)] if results else [])]


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    """Return a conversation of a few exchanges."""
    turns = [t for n in range(draw(st.integers(1, 3))) for t in draw(exchanges(n))]
    if draw(st.booleans()):
        turns.insert(0, Turn("system", (draw(TEXTS),)))
    tools = tuple(
        ToolSpec(
            name, name.upper(), {"type": "object", "properties": {}}, strict=draw(st.booleans())
        )
        for name in draw(st.lists(NAMES, unique=True, max_size=3))
    )
    choices = ["auto", "required", "none", *(t.name for t in tools)] if tools else ["auto"]
    schema = Schema("answer", {"type": "object"}, strict=draw(st.booleans()))
    return Conversation(
        tuple(turns),
        tools,
        draw(st.sampled_from(choices)),
        draw(st.sampled_from([None, True, False])) if tools else None,
        Sampling(draw(st.sampled_from([None, 7])), draw(st.sampled_from([None, 0.5]))),
        draw(st.sampled_from([None, schema])),
        effort=draw(st.sampled_from([None, "low"])),
        end_user=draw(st.sampled_from([None, "u"])),
    )


@given(conversations())
def test_a_conversation_survives_the_shape(said: Conversation) -> None:
    """Text, calls, order, ids, results, media, tools and options."""
    body = orjson.loads(orjson.dumps({"model": "m", **write_conversation(said)}))
    assert read_conversation(body) == said
    SHAPE.parse(orjson.dumps(body), {})


@given(conversations(), st.randoms(use_true_random=False))
def test_results_find_their_calls_wherever_they_stand(said: Conversation, random: object) -> None:
    """Messages between a call and its output change nothing of what belongs together."""
    body = orjson.loads(orjson.dumps(write_conversation(said)))
    outputs = [i for i in body["input"] if i["type"].endswith("_output")]
    body["input"] = [i for i in body["input"] if i not in outputs] + outputs[::-1]
    turns = read_conversation(body).turns
    for call_turn, after in pairwise(turns):
        calls = [p.id for p in call_turn.parts if isinstance(p, Call)]
        if calls:
            assert [p.call_id for p in after.parts if isinstance(p, Result)] == calls


PARTS = st.lists(
    st.one_of(
        TEXTS,
        st.builds(Refusal, WORDS),
        st.builds(Reasoning, WORDS, st.sampled_from(["", "sig"]), st.just(""), st.just(BY.model)),
        st.tuples(NAMES, st.sampled_from(["{}", '{"a": "b"}'])),
    ),
    max_size=6,
)


def answer(drawn: list[object]) -> tuple[AnswerPart, ...]:
    """Return the parts as an answer: calls numbered, neighbours of a kind that merge left out."""
    parts: list[AnswerPart] = []
    for at, one in enumerate(drawn):
        part = Call(ToolCallId(f"call_{at}"), *one) if isinstance(one, tuple) else one
        assert isinstance(part, Text | Refusal | Reasoning | Call)
        if parts and type(parts[-1]) is type(part) and not isinstance(part, Call):
            continue
        parts.append(part)
    return tuple(parts)


def asked() -> InferenceRequest:
    """Return a request of this shape."""
    return SHAPE.parse(b'{"model": "auto", "input": "Hi", "stream": true}', {})


def written(parts: tuple[AnswerPart, ...], pieces: Iterator[Event]) -> list[JsonObject]:
    """Return the events in which our writer says an answer."""
    writer = SHAPE.writer(asked(), ID)
    finish = "tool_calls" if any(isinstance(p, Call) for p in parts) else "stop"
    raw = b"".join(writer.piece(StreamDelta(Piece((event,)), BY.model)) for event in pieces)
    raw += writer.end(StreamEnd(Ending(finish), Usage(3, 4), REPORT))
    return [orjson.loads(line[6:]) for line in raw.split(b"\n") if line.startswith(b"data: ")]


@given(PARTS)
def test_a_streamed_answer_is_well_formed_and_means_what_the_model_said(
    drawn: list[object],
) -> None:
    """Numbers without gaps, items opened and closed once, and the same answer when read again."""
    parts = answer(drawn)
    events = written(parts, events_of(parts))
    check_stream(events)
    reader = SHAPE.reader(asked(), BY)
    again = [e for event in events for p in reader.read(ServerEvent("", event)) for e in p.events]
    unsigned = [Reasoning(p.text) if isinstance(p, Reasoning) else p for p in parts]
    folded = [Reasoning(p.text) if isinstance(p, Reasoning) else p for p in fold_events(again)]
    assert folded == unsigned
    assert reader.usage == Usage(3, 4)
    reader.end()


@given(PARTS)
def test_an_answer_is_the_same_streamed_and_whole(drawn: list[object]) -> None:
    """The items have the same ids, too: a client may ask for either and continue the other."""
    parts = answer(drawn)
    streamed = written(parts, events_of(parts))[-1]["response"]
    finish = "tool_calls" if any(isinstance(p, Call) for p in parts) else "stop"
    completion = Completion(Reply(parts, finish), None, Usage(3, 4), REPORT)
    whole = orjson.loads(SHAPE.write(completion, asked(), ID))
    assert isinstance(streamed, dict)
    for ours in (whole, streamed):
        del ours["created_at"]
    assert whole == streamed
    read = SHAPE.read(whole, asked(), BY).reply
    assert [p for p in read.parts if isinstance(p, Call)] == [
        p for p in parts if isinstance(p, Call)
    ]
    assert read.text == "".join(p.text for p in parts if isinstance(p, Text))


@given(PARTS)
def test_what_passes_from_upstream_to_client_of_the_same_shape_keeps_its_form(
    drawn: list[object],
) -> None:
    """Read by our reader and passed on by our writer, a stream is as it was."""
    parts = answer(drawn)
    sent = written(parts, events_of(parts))
    reader, writer = SHAPE.reader(asked(), BY), SHAPE.writer(asked(), ID)
    raw = b""
    for event in sent:
        for piece in reader.read(ServerEvent("", event)):
            raw += writer.piece(StreamDelta(piece, BY.model))
    raw += writer.end(StreamEnd(reader.end(), Usage(3, 4), REPORT))
    got = [orjson.loads(line[6:]) for line in raw.split(b"\n") if line.startswith(b"data: ")]
    check_stream(got)
    assert [event["type"] for event in got] == [event["type"] for event in sent]
    assert [e.get("item_id") for e in got] == [e.get("item_id") for e in sent]


def check_stream(events: list[JsonObject]) -> None:
    """Assert what every client of the shape counts on."""
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [events[0]["type"], events[-1]["type"]] == ["response.created", "response.completed"]
    opened: dict[object, JsonObject] = {}
    closed: dict[object, JsonObject] = {}
    for event in events:
        place = event.get("output_index")
        item = event.get("item")
        if event["type"] == "response.output_item.added":
            assert isinstance(item, dict)
            assert place == len(opened)
            opened[place] = item
        elif event["type"] == "response.output_item.done":
            assert isinstance(item, dict)
            assert (item["id"], item["type"]) == (opened[place]["id"], opened[place]["type"])
            assert place not in closed
            closed[place] = item
        elif place is not None:
            assert event["item_id"] == opened[place]["id"]
            assert place not in closed
    last = events[-1]["response"]
    assert isinstance(last, dict)
    assert last["output"] == [closed[place] for place in sorted(opened, key=str)]
    assert len({item["id"] for item in closed.values()}) == len(closed)
