"""Streams of upstreams of the messages shape, right and wrong."""

from collections.abc import Sequence

import pytest

from turnout.core.ids import ModelId
from turnout.core.json import JsonObject
from turnout.core.usage import Usage
from turnout.gateway.dialog.conversation import Call, Foreign, Reasoning, Text
from turnout.gateway.dialog.events import Ending, ForeignPart, Piece, Reply
from turnout.gateway.exchange import ServerEvent, UpstreamError
from turnout.gateway.wire.messages import MessagesShape
from turnout.gateway.wire.messages.reader import MessagesReader
from turnout.testing.messages.turns import MessagesTurn, events, message, text, thinking, tool_use

CALL = tool_use("Read", {"path": "a.py"}, "toolu_1")


class _Read:
    """What a stream came to."""

    def __init__(self, sent: Sequence[JsonObject]) -> None:
        self.reader = MessagesReader(ModelId("m"))
        self.pieces: list[Piece] = []
        for data in sent:
            self.pieces += self.reader.read(ServerEvent(str(data.get("type", "")), data))
        self.ending: Ending = self.reader.end()

    @property
    def reply(self) -> Reply:
        return self.reader.so_far()

    @property
    def natives(self) -> list[JsonObject]:
        return [p.native.value for p in (*self.pieces, *self.ending.pieces) if p.native]


def _sent(turn: MessagesTurn) -> list[JsonObject]:
    return [event.data for event in events(turn, "upstream-name", 1)]


def test_an_answer_is_understood() -> None:
    """Thought with its signature, text, call, counts that hold what a cache read."""
    counts = {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 7}
    turn = MessagesTurn((thinking("hm", "sig"), text("Reading it now."), CALL), counts)
    read = _Read(_sent(turn))
    assert read.reply.parts == (
        Reasoning("hm", "sig"),
        Text("Reading it now."),
        Call("toolu_1", "Read", '{"path":"a.py"}'),
    )
    assert read.ending.finish == "tool_calls"
    assert read.reader.usage == Usage(100, 7, cache_read_input_tokens=90)
    assert read.reader.repairs == ()
    assert read.ending.usage_native == counts


def test_natives_are_the_upstreams_own_under_the_catalogs_model() -> None:
    """A ping too; the counts and the end wait."""
    sent = _sent(MessagesTurn((text("Hi."),)))
    read = _Read(sent)
    start = {**sent[0], "message": {**sent[0]["message"], "model": "m"}}
    assert read.natives == [start, *sent[1:-2]]
    (delta,) = read.ending.natives
    assert delta.value == {"type": "message_delta", "delta": sent[-2]["delta"]}


def test_a_call_without_arguments_has_an_empty_object() -> None:
    """No delta comes for it."""
    read = _Read(_sent(MessagesTurn((tool_use("List", {}, "toolu_1"),))))
    assert read.reply.calls == (Call("toolu_1", "List", "{}"),)


def test_arguments_that_come_with_the_start_are_read() -> None:
    """Some servers send the whole call at once."""
    sent = _sent(MessagesTurn((tool_use("Read", {}, "toolu_1"),)))
    begun = next(e for e in sent if e["type"] == "content_block_start")
    whole = {**begun, "content_block": {**CALL}}
    read = _Read([whole if e is begun else e for e in sent])
    assert read.reply.calls == (Call("toolu_1", "Read", '{"path":"a.py"}'),)


@pytest.mark.cases
@pytest.mark.parametrize("given", ["toolu_1", ""])
def test_ids_that_name_two_calls_or_none_are_replaced(given: str) -> None:
    """In what the client sees and in what is understood alike."""
    turn = MessagesTurn((tool_use("Read", {}, given), tool_use("Read", {}, given)))
    read = _Read(_sent(turn))
    ids = [call.id for call in read.reply.calls]
    assert len(set(ids)) == 2
    assert all(ids)
    shown = [n["content_block"]["id"] for n in read.natives if "content_block" in n]
    assert shown == ids
    assert read.reader.repairs


@pytest.mark.cases
def test_a_tool_stop_without_a_call_is_an_ordinary_end() -> None:
    """A client would wait for a call for ever."""
    read = _Read(_sent(MessagesTurn((text("Well."),), stop_reason="tool_use")))
    assert read.ending.finish == "stop"
    assert read.ending.natives[0].value["delta"]["stop_reason"] == "end_turn"
    assert read.reader.repairs == ("stop reason made end_turn",)


def test_a_call_before_an_ordinary_end_is_a_tool_stop() -> None:
    """But a limit that was reached stays one."""
    read = _Read(_sent(MessagesTurn((CALL,), stop_reason="end_turn")))
    assert read.ending.finish == "tool_calls"
    cut = _Read(_sent(MessagesTurn((CALL,), stop_reason="max_tokens")))
    assert cut.ending.finish == "length"


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
        ("something_new", "stop"),
    ],
)
def test_every_stop_reason_has_a_meaning(reason: str, finish: str) -> None:
    """Unknown ones end like any answer; the client sees the upstream's own word."""
    read = _Read(_sent(MessagesTurn((text("Hi."),), stop_reason=reason, stop_sequence="END")))
    assert read.ending.finish == finish
    assert read.ending.stop_sequence == "END"
    assert read.ending.natives[0].value["delta"]["stop_reason"] == reason


def test_what_the_provider_ran_itself_is_passed_on_whole() -> None:
    """Only clients of this shape can read it."""
    search = {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "web_search",
        "input": {"q": 1},
    }
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    read = _Read(_sent(MessagesTurn((search, found, text("Found.")))))
    assert read.reply.parts == (
        Foreign("messages", search),
        Foreign("messages", found),
        Text("Found."),
    )
    foreign = [e for p in read.pieces for e in p.events if isinstance(e, ForeignPart)]
    assert [f.part.value for f in foreign] == [search, found]
    assert read.ending.finish == "stop"


def test_blocks_that_overlap_are_put_in_order() -> None:
    """The one before is closed when the next begins, and only once."""
    sent = _sent(MessagesTurn((text("A"), text("B"))))
    early = next(e for e in sent if e["type"] == "content_block_stop")
    moved = [e for e in sent if e is not early]
    moved.insert(-2, early)
    shown = [(n["type"], n["index"]) for n in _Read(moved).natives if "index" in n]
    assert [s for s in shown if s[0] != "content_block_delta"] == [
        ("content_block_start", 0),
        ("content_block_stop", 0),
        ("content_block_start", 1),
        ("content_block_stop", 1),
    ]


@pytest.mark.cases
def test_text_that_was_never_begun_is_begun_for_it() -> None:
    """A delta must not refer to what the client has not heard of."""
    sent = [e for e in _sent(MessagesTurn((text("Hi."),))) if e["type"] != "content_block_start"]
    read = _Read(sent)
    assert read.reply.text == "Hi."
    kinds = [n["type"] for n in read.natives if "index" in n]
    assert kinds == ["content_block_start", "content_block_delta", "content_block_stop"]


@pytest.mark.cases
def test_arguments_of_no_call_are_the_upstreams_failure() -> None:
    """Nobody can say which tool they are for."""
    sent = [e for e in _sent(MessagesTurn((CALL,))) if e["type"] != "content_block_start"]
    with pytest.raises(UpstreamError, match="never began"):
        _Read(sent)


def test_a_stream_that_stops_before_its_end_is_no_answer() -> None:
    """But one that only lacks `message_stop` is whole."""
    sent = _sent(MessagesTurn((text("Hi."),)))
    assert _Read(sent[:-1]).reply.text == "Hi."
    with pytest.raises(UpstreamError, match="before the answer was finished"):
        _Read(sent[:-2])


@pytest.mark.cases
def test_counts_that_come_twice_are_counted_once() -> None:
    """They are totals."""
    read = _Read(_sent(MessagesTurn((text("Hi."),), fault="usage_twice")))
    assert read.reader.usage == Usage(100, 20)
    assert len(read.ending.natives) == 1


def test_without_counts_there_is_no_usage() -> None:
    """Then it is estimated elsewhere."""
    assert _Read(_sent(MessagesTurn((text("Hi."),), fault="no_usage"))).reader.usage is None


@pytest.mark.parametrize(
    ("kind", "status"), [("overloaded_error", 529), ("rate_limit_error", 429), ("api_error", None)]
)
def test_an_error_in_band_is_raised_with_its_own_body(kind: str, status: int | None) -> None:
    """A client of this shape reads it unmodified."""
    body = {"type": "error", "error": {"type": kind, "message": "Overloaded"}}
    reader = MessagesReader(ModelId("m"))
    with pytest.raises(UpstreamError, match="Overloaded") as caught:
        list(reader.read(ServerEvent("error", body)))
    assert (caught.value.status, caught.value.shape) == (status, "messages")
    assert caught.value.body


def test_an_answer_that_came_whole_is_streamed_as_its_events() -> None:
    """Some servers know no streams."""
    turn = MessagesTurn((text("Reading."), CALL), stop_reason="end_turn")
    read = _Read([message(turn, "upstream-name", 1)])
    assert read.reply.parts == (Text("Reading."), Call("toolu_1", "Read", '{"path":"a.py"}'))
    assert read.ending.finish == "tool_calls"
    assert read.reader.usage == Usage(100, 20)


def test_the_end_is_known_by_its_stop_reason() -> None:
    """What breaks off after that breaks nothing."""
    sent = [ServerEvent(e.name, e.data) for e in events(MessagesTurn((CALL,)), "m", 1)]
    ends = [event.name for event in sent if MessagesShape().is_end(event)]
    assert ends == ["message_delta", "message_stop"]
