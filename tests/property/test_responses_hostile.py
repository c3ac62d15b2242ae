"""Whatever a client or an upstream sends in the responses shape, it is understood or refused."""

from contextlib import suppress
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.core.ids import RequestId
from turnout.core.inference import RoutingReport
from turnout.core.usage import Usage
from turnout.errors import GatewayError
from turnout.gateway.exchange import (
    Completion,
    InferenceRequest,
    ServerEvent,
    StreamDelta,
    StreamEnd,
    UpstreamError,
)
from turnout.gateway.wire.responses import ResponsesShape
from turnout.gateway.wire.responses.request import continue_request
from turnout.testing.exchange import deployment

SHAPE = ResponsesShape()
BY = deployment("p/m")
ID = RequestId("req-00112233445566aa")
REPORT = RoutingReport(
    BY.model, BY.provider, BY.id, "cost", "general", "default", None, False, False, 1, "only", None
)


def words(text: str) -> list[str]:
    """Return the words of a text."""
    return text.split()


KEYS = words("""
    type role content text name call_id id arguments input output tools summary status namespace
    encrypted_content image_url file_data input_audio data format action operation execution
    parameters strict mode server_label delta part item item_id output_index content_index
    summary_index response usage input_tokens output_tokens error code message refusal
""")
WORDS = st.sampled_from(
    words("""
    message reasoning function_call function_call_output custom_tool_call custom_tool_call_output
    tool_search_call tool_search_output local_shell_call local_shell_call_output shell_call
    apply_patch_call apply_patch_call_output additional_tools web_search_call item_reference
    input_text output_text input_image input_file input_audio refusal summary_text user assistant
    developer function custom namespace tool_search local_shell shell mcp web_search auto required
    allowed_tools json_schema c1 c2 f completed incomplete failed in_progress client
    """)
)
EVENTS = st.sampled_from(
    words("""
    response.created response.in_progress response.output_item.added response.output_item.done
    response.content_part.added response.output_text.delta response.output_text.done
    response.refusal.delta response.reasoning_summary_text.delta response.reasoning_text.delta
    response.reasoning_summary_part.added response.function_call_arguments.delta
    response.function_call_arguments.done response.custom_tool_call_input.done
    response.web_search_call.searching response.completed response.incomplete response.failed
    codex.event error
    """)
)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 3), st.floats(0, 2), WORDS, st.text(max_size=3)
)
JSON: Any = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    ),
    max_leaves=5,
)


def some(text: str) -> Any:
    """Return fields that may be there, each of them anything."""
    return dict.fromkeys(words(text), JSON)


ITEM = st.fixed_dictionaries(
    {"type": st.one_of(WORDS, JSON)},
    optional=some("""
    role content call_id name arguments input output tools action id operation summary
    encrypted_content status namespace execution
    """),
)
ITEMS = st.one_of(JSON, st.lists(ITEM, max_size=4))
BODY = st.fixed_dictionaries(
    {"model": st.just("auto"), "input": ITEMS},
    optional=some("""
    tool_choice text reasoning instructions store user max_output_tokens temperature
    previous_response_id stream
    """)
    | {"tools": ITEMS},
)
EVENT = st.fixed_dictionaries(
    {"type": st.one_of(EVENTS, EVENTS, JSON)},
    optional=some("""
    output_index item_id delta text arguments part content_index summary_index code message error
    """)
    | {
        "item": st.one_of(JSON, ITEM),
        "response": st.fixed_dictionaries({}, optional=some("status usage") | {"output": ITEMS}),
    },
)


def parsed(body: Any) -> InferenceRequest | None:
    """Return the request, or None where it is refused as a client's mistake."""
    refusals: list[int] = []
    try:
        return SHAPE.parse(orjson.dumps(body), {})
    except GatewayError as error:
        refusals.append(error.status)
    assert refusals == [400]
    return None


@given(BODY, st.lists(ITEM, max_size=3))
@settings(max_examples=80)
def test_any_request_is_understood_or_refused(body: Any, before: Any) -> None:
    """By every step that reads it."""
    request = parsed(body)
    if request is None:
        return
    orjson.dumps(SHAPE.prepare(request, BY, None))
    with suppress(GatewayError):
        said = SHAPE.conversation(request)
        orjson.dumps(SHAPE.prepare(request, BY, said))
    with suppress(GatewayError):
        SHAPE.conversation(continue_request(request, before))


@given(st.lists(EVENT, max_size=8))
@settings(max_examples=80)
def test_any_stream_is_read_or_is_an_error(events: Any) -> None:
    """And what was read so far is written so that every event has its number."""
    request = parsed({"model": "auto", "input": "Hi"})
    assert request is not None
    reader, writer = SHAPE.reader(request, BY), SHAPE.writer(request, ID)
    raw = b""
    try:
        for event in events:
            for piece in reader.read(ServerEvent("", event)):
                raw += writer.piece(StreamDelta(piece, BY.model))
        raw += writer.end(StreamEnd(reader.end(), reader.usage or Usage(1, 1), REPORT))
    except UpstreamError as error:
        raw += writer.error(error)
    reader.so_far()
    told = [orjson.loads(line[6:]) for line in raw.split(b"\n") if line.startswith(b"data: ")]
    assert [event["sequence_number"] for event in told] == list(range(len(told)))
    assert told[-1]["response"]["status"] in {"completed", "incomplete", "failed"}


@given(st.one_of(JSON, st.fixed_dictionaries({"output": st.lists(ITEM, max_size=4)})))
@settings(max_examples=80)
def test_any_whole_answer_is_read_or_is_an_error(body: Any) -> None:
    """And what is read can be written."""
    if not isinstance(body, dict):
        return
    request = parsed({"model": "auto", "input": "Hi", "tools": [{"type": "function", "name": "f"}]})
    assert request is not None
    with suppress(UpstreamError):
        read = SHAPE.read(body, request, BY)
        SHAPE.write(Completion(read.reply, read.native, Usage(1, 1), REPORT), request, ID)
        SHAPE.write(Completion(read.reply, None, Usage(1, 1), REPORT), request, ID)
