"""Upstreams of the responses shape, as they are rather than as they should be."""

from dataclasses import replace

import pytest
from tests.unit.gateway.wire.responses.samples import (
    BY,
    SHAPE,
    USAGE,
    added,
    completed,
    done,
    read,
    request,
    types,
)

from turnout.core.usage import Usage
from turnout.gateway.dialog.conversation import Call, Foreign, Reasoning, Text
from turnout.gateway.dialog.events import ForeignPart, ReasoningDelta
from turnout.gateway.dialog.fold import fold_events
from turnout.gateway.exchange import ServerEvent, UpstreamError

CALL = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "f", "arguments": ""}
FULL = {**CALL, "arguments": '{"p":1}', "status": "completed"}
ARGUED = {"output_index": 0, "item_id": "fc_1"}


@pytest.mark.cases
def test_arguments_that_come_only_whole_are_delivered_once():
    """No delta at all: one is made, and the closing forms add nothing."""
    told = {"type": "response.function_call_arguments.done", "arguments": '{"p":1}', **ARGUED}
    meant, sent = read(added(0, CALL), told, done(0, FULL), completed(FULL))
    assert fold_events(meant) == (Call("call_1", "f", '{"p":1}'),)
    deltas = [e for e in sent if e["type"] == "response.function_call_arguments.delta"]
    assert [e["delta"] for e in deltas] == ['{"p":1}']


@pytest.mark.cases
def test_arguments_that_come_in_pieces_and_whole_are_delivered_once():
    """The last piece may be missing: then the whole completes it."""
    delta = {"type": "response.function_call_arguments.delta", "delta": '{"p"', **ARGUED}
    told = {"type": "response.function_call_arguments.done", "arguments": '{"p":1}', **ARGUED}
    meant, _ = read(added(0, CALL), delta, told, done(0, FULL), completed(FULL))
    assert fold_events(meant) == (Call("call_1", "f", '{"p":1}'),)


@pytest.mark.cases
def test_an_item_that_was_never_announced_is_opened_first():
    """A delta for an unknown item opens it, with the part that the text belongs to."""
    delta = {"type": "response.output_text.delta", "item_id": "msg_9", "delta": "Hi"}
    _, sent = read(delta, completed())
    assert types(sent)[:6] == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_item.done",
    ]
    assert sent[-1]["response"]["output"][0]["content"][0]["text"] == "Hi"


@pytest.mark.cases
def test_a_call_that_is_closed_without_being_opened_is_opened_first():
    """And its arguments come before it is closed."""
    meant, sent = read(done(0, FULL), completed())
    assert fold_events(meant) == (Call("call_1", "f", '{"p":1}'),)
    assert types(sent)[2:5] == [
        "output_item.added",
        "function_call_arguments.delta",
        "output_item.done",
    ]


@pytest.mark.cases
def test_an_empty_output_at_the_end_is_filled_with_what_came():
    """The items were streamed; the closing event holds none of them."""
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    delta = {"type": "response.output_text.delta", "output_index": 0, "delta": "Hi"}
    meant, sent = read(added(0, message), delta, completed())
    assert fold_events(meant) == (Text("Hi"),)
    assert sent[-1]["response"]["output"][0]["content"][0]["text"] == "Hi"


@pytest.mark.cases
def test_output_that_comes_only_at_the_end_is_streamed_then():
    """A server that streams nothing but lifecycle events loses nothing."""
    content = [{"type": "output_text", "text": "Hi", "annotations": []}]
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": content}
    meant, sent = read({"type": "response.created", "response": {}}, completed(message, FULL))
    assert fold_events(meant) == (Text("Hi"), Call("call_1", "f", '{"p":1}'))
    assert len(sent[-1]["response"]["output"]) == 2


@pytest.mark.cases
def test_ids_of_another_shape_and_ids_that_change_become_one_id_of_ours():
    """`chatcmpl-` names no item, and one thought has one id."""
    message = {"id": "chatcmpl-1", "type": "message", "role": "assistant", "content": []}
    deltas = [
        {"type": "response.output_text.delta", "output_index": 0, "item_id": f"x{n}", "delta": "a"}
        for n in range(3)
    ]
    _, sent = read(added(0, message), *deltas, completed())
    ids = {e["item_id"] for e in sent if "item_id" in e}
    assert len(ids) == 1
    assert ids.pop().startswith("msg_")


@pytest.mark.cases
def test_a_response_that_is_not_nested_is_nested_and_the_type_added():
    """Clients wait for `response.completed` with a `response` in it."""
    reader = SHAPE.reader(request(), BY)
    flat = {"id": "resp_1", "status": "completed", "output": [FULL], "usage": USAGE}
    list(reader.read(ServerEvent("response.completed", flat)))
    native = reader.end().natives[0]
    assert native.name == "response.completed"
    assert native.value["response"]["status"] == "completed"
    assert reader.so_far().calls == (Call("call_1", "f", '{"p":1}'),)


@pytest.mark.cases
def test_events_of_other_protocols_do_not_reach_the_client():
    """`codex.*`, rate limits, keep-alives: none of them is part of the API."""
    _, sent = read({"type": "codex.rate_limits", "x": 1}, {"type": "keepalive"}, completed(FULL))
    assert all(event["type"].startswith("response.") for event in sent)


@pytest.mark.cases
def test_a_tool_search_call_with_an_object_as_arguments_passes():
    """It is no text, and what follows it arrives."""
    search = {
        "id": "tsc_1",
        "type": "tool_search_call",
        "call_id": "call_2",
        "execution": "client",
        "arguments": {"query": "calendar"},
        "status": "completed",
    }
    meant, sent = read(added(0, search), done(0, search), completed(search))
    assert fold_events(meant) == (Call("call_2", "tool_search", '{"query":"calendar"}'),)
    assert sent[-1]["response"]["output"][0]["arguments"] == {"query": "calendar"}
    assert sent[-1]["type"] == "response.completed"


@pytest.mark.cases
def test_a_call_without_arguments_gets_an_empty_object():
    """Clients parse it; the mend is noted."""
    reader = SHAPE.reader(request(), BY)
    list(reader.read(ServerEvent("", done(0, CALL))))
    list(reader.read(ServerEvent("", completed(CALL))))
    assert reader.so_far().calls == (Call("call_1", "f", "{}"),)
    assert reader.repairs == ("empty arguments replaced by {}",)


@pytest.mark.cases
@pytest.mark.parametrize(
    ("event", "status"),
    [
        ({"type": "error", "code": "rate_limit_exceeded", "message": "slow down"}, 429),
        ({"type": "error", "error": {"type": "server_error", "message": "broken"}}, None),
        ({"error": {"message": "broken"}, "choices": []}, None),
        (
            {
                "type": "response.failed",
                "response": {"status": "failed", "error": {"code": "server_error", "message": "x"}},
            },
            None,
        ),
    ],
)
def test_an_error_in_band_is_an_error(event, status):
    """In whichever form; never an empty answer."""
    reader = SHAPE.reader(request(), BY)
    with pytest.raises(UpstreamError) as caught:
        list(reader.read(ServerEvent("", event)))
    assert caught.value.status == status


def test_a_stream_that_stops_before_its_end_is_cut():
    """Without `response.completed` nothing is whole."""
    reader = SHAPE.reader(request(), BY)
    list(reader.read(ServerEvent("", added(0, CALL))))
    with pytest.raises(UpstreamError, match="before the answer was finished"):
        reader.end()
    assert reader.so_far().calls == (Call("call_1", "f", ""),)


def test_what_comes_after_the_end_changes_nothing():
    """A second `response.completed` is not billed again."""
    reader = SHAPE.reader(request(), BY)
    list(reader.read(ServerEvent("", completed(FULL))))
    twice = completed(FULL, usage={**USAGE, "input_tokens": 99})
    assert list(reader.read(ServerEvent("", twice))) == []
    assert reader.usage == Usage(10, 5, 4, 2)


@pytest.mark.parametrize(
    ("reason", "finish"), [("max_output_tokens", "length"), ("content_filter", "content_filter")]
)
def test_an_incomplete_answer_says_why(reason, finish):
    """The limit, or the filter."""
    reader = SHAPE.reader(request(), BY)
    cut = completed(FULL, status="incomplete", incomplete_details={"reason": reason})
    list(reader.read(ServerEvent("", {**cut, "type": "response.incomplete"})))
    ending = reader.end()
    assert (ending.finish, ending.natives[0].name) == (finish, "response.incomplete")


def test_a_thought_that_only_its_maker_can_read_is_sealed_for_it():
    """The seal names the maker; any other upstream never sees the item."""
    thought = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
    meant, sent = read(done(0, thought), completed(thought))
    assert meant == [ReasoningDelta(encrypted="gAAA")]
    item = sent[-1]["response"]["output"][0]
    assert item["encrypted_content"].endswith(".gAAA")
    assert item["encrypted_content"] != "gAAA"


def test_a_thought_with_several_paragraphs_is_one_thought():
    """Summaries come as parts; an empty line stands between them elsewhere."""
    deltas = [
        {
            "type": "response.reasoning_summary_text.delta",
            "output_index": 0,
            "summary_index": n,
            "delta": said,
        }
        for n, said in enumerate(("First.", "Second."))
    ]
    meant, _ = read(*deltas, completed())
    assert fold_events(meant) == (Reasoning("First.\n\nSecond."),)


def test_what_a_provider_s_own_tool_did_is_kept_for_this_shape():
    """Its events pass, and elsewhere it is one foreign part."""
    search = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {}}
    going = {"type": "response.web_search_call.searching", "output_index": 0, "item_id": "ws_1"}
    meant, sent = read(added(0, search), going, done(0, search), completed(search))
    assert meant == [ForeignPart(Foreign("responses", search))]
    assert "web_search_call.searching" in types(sent)


def test_a_whole_answer_for_a_stream_is_understood():
    """Some servers ignore `stream`."""
    reader = SHAPE.reader(request(), BY)
    pieces = list(reader.read(ServerEvent("", completed(FULL)["response"])))
    assert any(piece.visible for piece in pieces)
    assert reader.end().finish == "tool_calls"


@pytest.mark.parametrize(
    "body",
    [
        {"status": "failed", "error": {"code": "server_error", "message": "x"}, "output": []},
        {"object": "response"},
        {"output": None},
    ],
)
def test_a_whole_answer_that_is_none_is_an_error(body):
    """Never a success without content."""
    with pytest.raises(UpstreamError):
        SHAPE.read(body, request(), BY)


@pytest.mark.cases
def test_two_calls_of_one_id_are_two_calls():
    """The second gets an id of its own, streamed and whole."""
    second = {**FULL, "id": "fc_2", "arguments": '{"p":2}'}
    meant, sent = read(done(0, FULL), done(1, second), completed(FULL, second))
    calls = fold_events(meant)
    whole = SHAPE.read(completed(FULL, second)["response"], request(), BY)
    for found in (calls, whole.reply.calls):
        assert [call.arguments for call in found] == ['{"p":1}', '{"p":2}']
        assert found[0].id != found[1].id
    assert [i["call_id"] for i in sent[-1]["response"]["output"]] == [c.id for c in calls]
    assert whole.repairs == ("duplicate call id replaced",)


TEXT_CALL = '<tool_call>\n{"name": "f", "arguments": {"p": 1}}\n</tool_call>'
LEAVES = replace(BY, calls_in_text=True)


@pytest.mark.cases
def test_a_call_that_is_printed_as_text_becomes_a_call():
    """Of a declared tool, where the server is known for it."""
    content = [{"type": "output_text", "text": TEXT_CALL}]
    body = {"status": "completed", "output": [{"type": "message", "content": content}]}
    asked = request(tools=[{"type": "function", "name": "f"}])
    read = SHAPE.read(body, asked, LEAVES)
    assert [(call.name, call.arguments) for call in read.reply.calls] == [("f", '{"p": 1}')]
    assert read.reply.finish == "tool_calls"
    assert read.repairs == ("calls read from the text",)
    assert SHAPE.read(body, request(), LEAVES).reply.calls == ()
    assert SHAPE.read(body, asked, BY).reply.calls == ()
    assert SHAPE.needs_whole(asked, LEAVES)


def test_text_beside_a_printed_call_is_kept():
    """What the model said before it stays a message."""
    content = [{"type": "output_text", "text": f"Reading. {TEXT_CALL}"}]
    body = {"status": "completed", "output": [{"type": "message", "content": content}]}
    asked = request(tools=[{"type": "function", "name": "f"}])
    reply = SHAPE.read(body, asked, LEAVES).reply
    assert (reply.text, len(reply.calls)) == ("Reading.", 1)
    assert SHAPE.read(body, asked, BY).reply.calls == ()


def test_a_tool_choice_that_is_not_enforced_becomes_a_schema():
    """One alternative for each tool that may be called."""
    lax = replace(BY, enforces_tool_choice=False)
    tools = [{"type": "function", "name": name} for name in ("f", "g")]
    body = SHAPE.prepare(request(tools=tools, tool_choice="required"), lax, None)
    assert body["tool_choice"] == "auto"
    wanted = body["text"]["format"]
    assert wanted["type"] == "json_schema"
    names = [each["properties"]["name"]["const"] for each in wanted["schema"]["anyOf"]]
    assert names == ["f", "g"]


def argued(at, item_id, piece):
    """Return the event of a piece of a call's arguments."""
    name = "response.function_call_arguments.delta"
    return {"type": name, "output_index": at, "item_id": item_id, "delta": piece}


@pytest.mark.cases
@pytest.mark.parametrize("places", [(0, 0), (None, None), (3, 7)])
@pytest.mark.parametrize("ids", [("fc_1", "fc_2"), ("", "")])
def test_calls_are_told_apart_however_they_are_counted(places, ids):
    """All at place 0, without a place, or with gaps; with ids of their own, or none."""
    (one, two), (first, second) = places, ids
    a = {**CALL, "id": first, "call_id": "call_1"}
    b = {**CALL, "id": second, "call_id": "call_2", "name": "g"}
    done_a, done_b = {**a, "arguments": '{"a":1}'}, {**b, "arguments": '{"b":2}'}
    events = [
        added(one, a),
        argued(one, first, '{"a"'),
        argued(one, first, ":1}"),
        done(one, done_a),
        added(two, b),
        argued(two, second, '{"b":2}'),
        done(two, done_b),
        completed(done_a, done_b),
    ]
    meant, sent = read(*events)
    found = [(call.id, call.name, call.arguments) for call in fold_events(meant)]
    assert found == [("call_1", "f", '{"a":1}'), ("call_2", "g", '{"b":2}')]
    output = sent[-1]["response"]["output"]
    assert [(i["call_id"], i["arguments"]) for i in output] == [(f[0], f[2]) for f in found]


@pytest.mark.cases
def test_calls_that_are_open_at_once_at_one_place_are_two():
    """Their pieces are told apart by the ids of their items."""
    a = {**CALL, "id": "fc_1", "call_id": "call_1"}
    b = {**CALL, "id": "fc_2", "call_id": "call_2"}
    meant, _ = read(
        added(0, a),
        added(0, b),
        argued(0, "fc_1", '{"a":1}'),
        argued(0, "fc_2", '{"b":2}'),
        done(0, {**a, "arguments": '{"a":1}'}),
        done(0, {**b, "arguments": '{"b":2}'}),
        completed(),
    )
    assert [call.arguments for call in fold_events(meant)] == ['{"a":1}', '{"b":2}']


def test_there_is_an_end_to_the_items_of_one_answer():
    """Every event is looked for among all of them."""
    reader = SHAPE.reader(request(), BY)
    opened = [added(at, {**CALL, "id": f"fc_{at}", "call_id": f"call_{at}"}) for at in range(2_049)]
    for told in opened[:-1]:
        assert reader.read(ServerEvent(told["type"], told))
    with pytest.raises(UpstreamError, match="more than 2048 things"):
        reader.read(ServerEvent(opened[-1]["type"], opened[-1]))
