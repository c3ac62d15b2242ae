"""Whatever a client or an upstream sends, the chat wire loses nothing and never breaks."""

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from turnout.core.ids import DeploymentId, ModelId, ProviderName, RequestId
from turnout.core.inference import RoutingReport
from turnout.core.usage import Usage
from turnout.errors import GatewayError
from turnout.gateway.dialog.events import Native, Reply
from turnout.gateway.exchange import Completion, ServerEvent, UpstreamError
from turnout.gateway.wire.chat import ChatShape
from turnout.gateway.wire.chat.answer import write_completion
from turnout.gateway.wire.chat.reader import ChatReader
from turnout.gateway.wire.chat.request import parse_request
from turnout.testing.exchange import PLAIN_REQUEST, deployment

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=12,
)
EXTRAS = st.dictionaries(TEXT.map("x_{}".format), JSON, max_size=4)
REPORT = RoutingReport(
    ModelId("m"),
    ProviderName("p"),
    DeploymentId("p/m"),
    "cost",
    "chat",
    "default",
    None,
    False,
    False,
    0,
    "because",
    None,
)


def _refusal(raw: bytes) -> GatewayError | None:
    try:
        parse_request(raw, {})
    except GatewayError as error:
        return error
    return None


@given(EXTRAS, EXTRAS, EXTRAS)
def test_a_request_keeps_every_field_that_is_not_ours(
    top: dict[str, Any], message: dict[str, Any], tool: dict[str, Any]
) -> None:
    """At every level, with its exact value and in its place."""
    function = {"name": "f", "parameters": {}, **tool}
    body = {
        "model": "auto",
        "messages": [{"role": "user", "content": "x", **message}],
        "tools": [{"type": "function", "function": function}],
        **top,
    }
    sent = {**body, "routing": {"optimize": "cost"}, "extended_thinking": True}
    assert parse_request(orjson.dumps(sent), {}).body == body


@given(st.dictionaries(st.sampled_from(["model", "messages", "tools", "stream", "routing"]), JSON))
def test_any_body_is_parsed_or_refused(body: dict[str, Any]) -> None:
    """Nothing a client sends becomes an error of ours."""
    refusal = _refusal(orjson.dumps(body))
    assert refusal is None or (refusal.status == 400 and refusal.message)


@given(st.binary(max_size=60))
def test_any_bytes_are_parsed_or_refused(raw: bytes) -> None:
    """JSON or not."""
    refusal = _refusal(raw)
    assert refusal is None or refusal.status == 400


@given(EXTRAS, EXTRAS)
def test_a_response_keeps_every_field_that_is_not_ours(
    top: dict[str, Any], message: dict[str, Any]
) -> None:
    """A provider's extras reach the client."""
    choice = {"index": 0, "message": {"content": "x", **message}, "finish_reason": "stop"}
    body = {"choices": [choice], "usage": {"prompt_tokens": 1}, **top}
    completion = Completion(Reply((), "stop"), Native("chat", body), Usage(), REPORT)
    written = orjson.loads(write_completion(completion, PLAIN_REQUEST, RequestId("req-1")))
    assert {name: written[name] for name in body} == body


_CALLS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["f", "g"]), "arguments": st.text("{}:1", max_size=9)}
    ),
    min_size=1,
    max_size=4,
)


@given(_CALLS, st.sampled_from(["right", "absent", "zero", "repeated"]), st.data())
def test_calls_are_put_together_however_they_are_cut(
    calls: list[dict[str, str]], habit: str, data: st.DataObject
) -> None:
    """Each call's arguments arrive whole at its own index, whatever the upstream's habit."""
    reader, pieces = ChatReader(deployment("p/m")), []
    for place, call in enumerate(calls):
        text = call["arguments"]
        cut = data.draw(st.integers(0, len(text)))
        fragments: list[dict[str, Any]] = [
            {"id": f"c{place}", "function": {"name": call["name"], "arguments": text[:cut]}},
            {"function": {"arguments": text[cut:]}},
        ]
        if habit == "repeated":
            fragments[1]["id"] = f"c{place}"
        for fragment in fragments:
            if habit in {"right", "zero"}:
                fragment["index"] = place if habit == "right" else 0
            chunk = {"choices": [{"index": 0, "delta": {"tool_calls": [fragment]}}]}
            pieces += reader.read(ServerEvent("", chunk))
    finish = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    pieces += reader.read(ServerEvent("", finish))
    pieces += reader.end().pieces
    arrived: dict[int, str] = {}
    for piece in pieces:
        shown: Any = piece.native.value if piece.native is not None else {}
        for fragment in shown["choices"][0]["delta"].get("tool_calls", []):
            at = fragment["index"]
            arrived[at] = arrived.get(at, "") + fragment["function"]["arguments"]
    expected = [call["arguments"] if call["arguments"].strip() else "{}" for call in calls]
    assert arrived == dict(enumerate(expected))
    assert [call.arguments for call in reader.so_far().calls] == expected


@given(st.lists(st.fixed_dictionaries({}, optional={"choices": JSON, "usage": JSON, "id": JSON})))
def test_no_chunk_breaks_the_reader(chunks: list[dict[str, Any]]) -> None:
    """An upstream's nonsense is its own failure, never ours."""
    reader = ChatReader(deployment("p/m"))
    try:
        for chunk in chunks:
            reader.read(ServerEvent("", chunk))
        reader.end()
    except UpstreamError:
        pass


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "choices": JSON
            | st.lists(
                st.fixed_dictionaries(
                    {}, optional={"message": JSON, "finish_reason": JSON, "index": JSON}
                ),
                max_size=2,
            ),
            "usage": JSON,
        },
    )
)
def test_no_answer_breaks_the_gateway(body: dict[str, Any]) -> None:
    """It is understood, or an upstream's failure; what is understood can be sent on."""
    shape, model = ChatShape(), deployment("p/m")
    try:
        read = shape.read(body, PLAIN_REQUEST, model)
    except UpstreamError:
        return
    completion = Completion(read.reply, read.native, Usage(), REPORT)
    assert orjson.loads(shape.write(completion, PLAIN_REQUEST, RequestId("req-1")))
    assert all(call.id for call in read.reply.calls)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"role": st.sampled_from(["user", "assistant", "system", "tool", "function", "x"])},
            optional={
                "content": JSON,
                "tool_calls": JSON,
                "function_call": JSON,
                "tool_call_id": TEXT,
                "reasoning_content": JSON,
            },
        ),
        max_size=4,
    ),
    st.dictionaries(st.sampled_from(["tools", "response_format", "stop", "n", "user"]), JSON),
)
def test_any_request_is_told_in_another_shape_or_refused(
    messages: list[dict[str, Any]], more: dict[str, Any]
) -> None:
    """Nothing a client sends becomes an error of ours, whoever is to answer it."""
    refused = _told_elsewhere(orjson.dumps({"model": "auto", "messages": messages, **more}))
    assert refused is None or refused.status == 400


def _told_elsewhere(raw: bytes) -> GatewayError | None:
    shape, model = ChatShape(), deployment("p/m")
    try:
        request = parse_request(raw, {})
        orjson.dumps(shape.prepare(request, model, None))
        orjson.dumps(shape.prepare(request, model, shape.conversation(request)))
    except GatewayError as error:
        return error
    return None
