"""A stream is read into visible pieces, counts and a finish that agrees with the calls."""

from collections.abc import Iterable
from typing import Any

import pytest

from turnout.core.ids import ModelId
from turnout.core.usage import Usage
from turnout.gateway.exchange import UpstreamError
from turnout.gateway.stages.stream_reader import StreamReader

USAGE = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}


def _chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "x", "model": "theirs", "created": 5, "choices": [choice]}


def _call(text: str = "", **fields: Any) -> dict[str, Any]:
    return {"tool_calls": [{**fields, "function": {"name": "f", "arguments": text}}]}


def _read(chunks: Iterable[dict[str, Any]]) -> tuple[StreamReader, list[Any]]:
    reader = StreamReader(ModelId("ours"))
    pieces = [piece for chunk in chunks for piece in reader.read(chunk)]
    return reader, pieces


def _reason(reader: StreamReader) -> Any:
    return reader.end()[-1]["choices"][0]["finish_reason"]


def test_nothing_is_handed_on_before_something_visible_came() -> None:
    """Up to there another deployment can still take over."""
    reader, pieces = _read([_chunk(role="assistant", content=""), _chunk(content="")])
    assert (pieces, reader.began) == ([], False)
    seen = list(reader.read(_chunk(content="Hi")))
    assert [piece["choices"][0]["delta"].get("content") for piece in seen] == ["", "", "Hi"]
    assert reader.began


@pytest.mark.cases
def test_the_finish_waits_for_the_end_and_text_beside_it_does_not() -> None:
    """The last piece of text may come in the chunk of the finish reason."""
    reader, pieces = _read([_chunk(content="a"), _chunk("stop", content="b"), USAGE])
    assert [piece["choices"][0]["delta"]["content"] for piece in pieces] == ["a", "b"]
    assert {piece["choices"][0]["finish_reason"] for piece in pieces} == {None}
    assert reader.end() == [
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
    assert reader.usage_body == USAGE["usage"]
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
        list(reader.read({"choices": [], "error": {"message": "overloaded", "code": 503}}))
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
    filled, _ = reader.end()
    assert filled["choices"][0]["delta"]["tool_calls"] == [
        {"index": 0, "function": {"arguments": "{}"}}
    ]
    assert reader.message()["tool_calls"][0]["function"]["arguments"] == "{}"


def test_an_empty_answer_is_an_answer() -> None:
    """What was held back comes before the finish."""
    reader, pieces = _read([_chunk(role="assistant"), _chunk("stop")])
    assert pieces == []
    assert [piece["choices"][0]["delta"] for piece in reader.end()] == [{"role": "assistant"}, {}]


def test_several_choices_finish_together() -> None:
    """Each keeps its own reason."""
    both = {
        "choices": [
            {"index": i, "delta": {"content": "a"}, "finish_reason": reason}
            for i, reason in enumerate(["stop", "length"])
        ]
    }
    reader, _ = _read([both])
    assert [c["finish_reason"] for c in reader.end()[-1]["choices"]] == ["stop", "length"]


def test_output_is_estimated_from_what_came() -> None:
    """A stream cut off before its usage still has a cost."""
    reader, _ = _read([_chunk(content="a" * 40), _chunk(**_call("b" * 39, id="x"))])
    assert reader.output_estimate == 20
