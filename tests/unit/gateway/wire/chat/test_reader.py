"""A stream is read into pieces, counts and a finish that agrees with the calls."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from turnout.core.ids import ToolCallId
from turnout.core.usage import Usage
from turnout.gateway.dialog.conversation import Call, Reasoning, Text
from turnout.gateway.dialog.events import (
    CallDelta,
    CallOpened,
    ForeignPart,
    Piece,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
)
from turnout.gateway.exchange import ServerEvent, UpstreamError
from turnout.gateway.wire.chat.reader import ChatReader
from turnout.testing.exchange import deployment

USAGE = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}


def _chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "x", "model": "theirs", "created": 5, "choices": [choice]}


def _call(text: str = "", **fields: Any) -> dict[str, Any]:
    return {"tool_calls": [{**fields, "function": {"name": "f", "arguments": text}}]}


MODEL = replace(deployment("acme/theirs"), model="ours")


def _event(chunk: dict[str, Any]) -> ServerEvent:
    return ServerEvent("", chunk)


def _pieces(chunks: Iterable[dict[str, Any]]) -> tuple[ChatReader, list[Piece]]:
    reader = ChatReader(MODEL)
    return reader, [piece for chunk in chunks for piece in reader.read(_event(chunk))]


def _read(chunks: Iterable[dict[str, Any]]) -> tuple[ChatReader, list[Any]]:
    reader, pieces = _pieces(chunks)
    return reader, [piece.native.value for piece in pieces if piece.native is not None]


def _ends(reader: ChatReader) -> list[Any]:
    ending = reader.end()
    natives = [piece.native for piece in ending.pieces] + list(ending.natives)
    return [native.value for native in natives if native is not None]


def _reason(reader: ChatReader) -> Any:
    return _ends(reader)[-1]["choices"][0]["finish_reason"]


def test_what_no_user_would_notice_is_not_visible() -> None:
    """Up to there another deployment can still take over."""
    opening = [_chunk(role="assistant", content=""), _chunk(content=""), _chunk(reasoning="")]
    _, pieces = _pieces([*opening, _chunk(content="Hi")])
    assert [piece.visible for piece in pieces] == [False, False, False, True]


@pytest.mark.parametrize(
    ("delta", "event"),
    [
        ({"content": "a"}, TextDelta("a")),
        ({"content": [{"type": "text", "text": "a"}]}, TextDelta("a")),
        ({"reasoning_content": "a"}, ReasoningDelta("a")),
        ({"reasoning": "a", "reasoning_details": [{}]}, ReasoningDelta("a")),
        ({"refusal": "a"}, RefusalDelta("a")),
    ],
)
def test_each_kind_of_delta_is_an_event(delta: dict[str, Any], event: object) -> None:
    """Beside the chunk as it came."""
    _, (piece,) = _pieces([_chunk(role="assistant", **delta)])
    assert piece.events == (event,)
    assert piece.native is not None


def test_what_only_this_shape_can_say_is_visible_too() -> None:
    """A sound is heard."""
    _, (piece,) = _pieces([_chunk(audio={"data": "AAAA"})])
    assert piece.visible
    assert isinstance(piece.events[0], ForeignPart)


def test_thoughts_of_any_name_are_found_where_the_catalog_says() -> None:
    """The field is the deployment's."""
    reader = ChatReader(replace(MODEL, reasoning_field="thinking_text"))
    (piece,) = reader.read(_event(_chunk(thinking_text="hm")))
    assert piece.events == (ReasoningDelta("hm"),)


def test_the_whole_answer_is_known_at_the_end() -> None:
    """Thought, text and calls, in their order."""
    chunks = [
        _chunk(reasoning_content="h"),
        _chunk(reasoning_content="m"),
        _chunk(content="a"),
        _chunk(content="b"),
        _chunk(**_call('{"p"', id="x", index=0)),
        _chunk(tool_calls=[{"index": 0, "function": {"arguments": ":1}"}}]),
        _chunk("tool_calls"),
    ]
    reader, _ = _pieces(chunks)
    reply = reader.so_far()
    assert reply.parts == (Reasoning("hm"), Text("ab"), Call(ToolCallId("x"), "f", '{"p":1}'))
    assert reply.finish == "tool_calls"


def test_a_whole_body_is_read_as_a_stream_of_one() -> None:
    """Servers that do not stream, and answers that were repaired."""
    calls = [
        {"id": name, "type": "function", "function": {"name": "f", "arguments": "{}"}}
        for name in ("a", "b")
    ]
    message = {"role": "assistant", "content": "Hi", "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    body = {"object": "chat.completion", "choices": [choice], "usage": USAGE["usage"]}
    reader, (chunk,) = _read([body])
    assert [c["index"] for c in chunk["choices"][0]["delta"]["tool_calls"]] == [0, 1]
    assert "message" not in chunk["choices"][0]
    assert [call.id for call in reader.so_far().calls] == ["a", "b"]
    assert (reader.usage, reader.end().finish) == (Usage(9, 3), "tool_calls")


def test_a_call_in_the_old_form_becomes_one_of_the_new() -> None:
    """A client that declared `tools` reads `tool_calls`."""
    old = [
        _chunk(function_call={"name": "f", "arguments": "{"}),
        _chunk(function_call={"arguments": "}"}),
        _chunk("function_call"),
    ]
    reader, _ = _pieces(old)
    assert reader.so_far().calls[0].arguments == "{}"
    assert _reason(reader) == "tool_calls"


def test_a_client_of_the_old_form_keeps_it() -> None:
    """It declared `functions`, and waits for `function_call`."""
    reader = ChatReader(MODEL, legacy=True)
    for chunk in (_chunk(function_call={"name": "f", "arguments": ""}), _chunk("stop")):
        pieces = list(reader.read(_event(chunk)))
    assert [isinstance(e, CallOpened) for p in pieces for e in p.events] == []
    filled, end = _ends(reader)
    assert filled["choices"][0]["delta"] == {"function_call": {"arguments": "{}"}}
    assert end["choices"][0]["finish_reason"] == "function_call"
    assert reader.end().finish == "tool_calls"


@pytest.mark.cases
def test_the_finish_waits_for_the_end_and_text_beside_it_does_not() -> None:
    """The last piece of text may come in the chunk of the finish reason."""
    reader, pieces = _read([_chunk(content="a"), _chunk("stop", content="b"), USAGE])
    assert [piece["choices"][0]["delta"]["content"] for piece in pieces] == ["a", "b"]
    assert {piece["choices"][0]["finish_reason"] for piece in pieces} == {None}
    assert _ends(reader) == [
        {
            "id": "x",
            "model": "ours",
            "created": 5,
            "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
        }
    ]


def test_usage_counts_once_however_often_it_comes() -> None:
    """A second usage chunk repeats the first."""
    reader, pieces = _read([_chunk(content="a"), _chunk("stop"), USAGE, USAGE])
    assert reader.usage == Usage(9, 3)
    assert reader.end().usage_native == USAGE["usage"]
    assert all("usage" not in piece for piece in pieces)


def test_usage_in_the_finish_chunk_is_found() -> None:
    """Not every server sends a chunk of its own for it."""
    reader, _ = _read([_chunk(content="a"), {**_chunk("stop"), "usage": USAGE["usage"]}])
    assert reader.usage == Usage(9, 3)


def test_a_stream_without_a_finish_reason_was_cut() -> None:
    """The SDKs take it for complete otherwise."""
    reader, _ = _read([_chunk(content="a")])
    with pytest.raises(UpstreamError, match="before the answer was finished"):
        reader.end()


def test_an_error_in_band_is_an_error() -> None:
    """An error object among the chunks is no empty answer."""
    reader, _ = _read([_chunk(content="a")])
    with pytest.raises(UpstreamError, match="overloaded") as caught:
        reader.read(_event({"choices": [], "error": {"message": "overloaded", "code": 503}}))
    assert caught.value.status == 503


@pytest.mark.cases
def test_a_finish_for_calls_without_a_call_becomes_stop() -> None:
    """Agents wait for ever for the call that was announced."""
    reader, _ = _read([_chunk(content="a"), _chunk("tool_calls", tool_calls=[])])
    assert _reason(reader) == "stop"
    assert reader.repairs == ("finish reason made stop",)


def test_calls_that_end_with_stop_are_calls() -> None:
    """Agents leave the loop on `stop`."""
    reader, _ = _read([_chunk(**_call("{}", id="a")), _chunk("stop")])
    assert _reason(reader) == "tool_calls"


def test_a_call_that_ran_into_the_limit_says_so() -> None:
    """Its arguments are incomplete; `length` is the truth."""
    reader, _ = _read([_chunk(**_call('{"p', id="a")), _chunk("length")])
    assert _reason(reader) == "length"


@pytest.mark.cases
def test_a_call_without_arguments_gets_an_empty_object() -> None:
    """Clients parse the arguments as JSON."""
    reader, _ = _read([_chunk(**_call(id="a")), _chunk("tool_calls")])
    filled, _ = _ends(reader)
    assert filled["choices"][0]["delta"]["tool_calls"] == [
        {"index": 0, "function": {"arguments": "{}"}}
    ]
    assert reader.so_far().calls[0].arguments == "{}"
    assert reader.end().pieces == ()


def test_an_empty_answer_is_an_answer() -> None:
    """It ends without a piece that anybody would notice."""
    reader, pieces = _read([_chunk(role="assistant"), _chunk("stop")])
    assert [piece["choices"][0]["delta"] for piece in pieces] == [{"role": "assistant"}]
    assert _reason(reader) == "stop"


def test_several_choices_finish_together() -> None:
    """Each keeps its own reason."""
    both = {
        "choices": [
            {"index": i, "delta": {"content": "a"}, "finish_reason": reason}
            for i, reason in enumerate(["stop", "length"])
        ]
    }
    reader, _ = _read([both])
    assert [c["finish_reason"] for c in _ends(reader)[-1]["choices"]] == ["stop", "length"]


@pytest.mark.cases
def test_the_first_fragment_without_an_index_gets_one() -> None:
    """SDKs break on a fragment that has none."""
    first = {"tool_calls": [{"id": "a", "type": "function", "function": {"name": "f"}}]}
    more = {"tool_calls": [{"function": {"arguments": "{}"}}]}
    reader, chunks = _read([_chunk(**first), _chunk(**more), _chunk("tool_calls")])
    fragments = [c["choices"][0]["delta"]["tool_calls"][0] for c in chunks]
    assert [fragment["index"] for fragment in fragments] == [0, 0]
    assert reader.repairs == ("call index added",)


@pytest.mark.cases
def test_the_last_fragment_may_come_with_the_finish() -> None:
    """The closing brace is not lost."""
    reader, chunks = _read(
        [
            _chunk(**_call('{"p":1', id="a", index=0)),
            _chunk("tool_calls", tool_calls=[{"index": 0, "function": {"arguments": "}"}}]),
        ]
    )
    assert reader.so_far().calls[0].arguments == '{"p":1}'
    assert chunks[-1]["choices"][0]["finish_reason"] is None
    assert reader.end().finish == "tool_calls"


@pytest.mark.cases
def test_usage_of_a_vendors_own_field_is_not_shown_twice() -> None:
    """One count, whichever way it came."""
    counts = USAGE["usage"]
    groq = {**_chunk("stop"), "x_groq": {"id": "r", "usage": counts}}
    reader, chunks = _read([_chunk(content="a"), groq, USAGE])
    assert all("usage" not in str(chunk) for chunk in [*chunks, *_ends(reader)])
    assert reader.usage == Usage(9, 3)


def test_arguments_that_are_missing_are_filled_in_for_every_shape() -> None:
    """As an event, too."""
    reader, _ = _pieces([_chunk(**_call(id="a", index=0)), _chunk("tool_calls")])
    (filled,) = reader.end().pieces
    assert filled.events == (CallDelta(0, "{}"),)
