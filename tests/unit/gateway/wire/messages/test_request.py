"""What is read of a messages request, and what is refused."""

from typing import Any

import orjson
import pytest

from turnout.core.json import JsonObject
from turnout.errors import GatewayError
from turnout.gateway.exchange import InferenceRequest
from turnout.gateway.wire.messages import MessagesShape

SHAPE = MessagesShape()
ASKED = {"role": "user", "content": "Read a.py"}
MADE = {
    "role": "assistant",
    "content": [
        {"type": "text", "text": "Reading."},
        {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "a.py"}},
    ],
}
ANSWERED = {
    "role": "user",
    "content": [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x = 1"},
        {"type": "text", "text": "<system-reminder>Be brief.</system-reminder>"},
    ],
}


def _parse(headers: dict[str, str] | None = None, **fields: Any) -> InferenceRequest:
    body = {"model": "auto", "max_tokens": 64, "messages": [ASKED], **fields}
    return SHAPE.parse(orjson.dumps(body), headers or {})


def _refusal(**fields: Any) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        _parse(**fields)
    assert caught.value.status == 400
    return caught.value


def test_a_plain_request_is_read() -> None:
    """Model, limit, shape; counts are always shown in this shape."""
    request = _parse()
    assert (request.shape, request.model, request.max_tokens) == ("messages", "auto", 64)
    assert request.include_usage
    assert request.input_tokens_estimate > 10
    assert not request.stream


def test_results_at_the_end_keep_the_loop_open_even_before_other_text() -> None:
    """Claude Code puts reminders behind its tool results."""
    request = _parse(messages=[ASKED, MADE, ANSWERED])
    assert request.open_calls == ("toolu_1",)
    assert request.past_calls == ("toolu_1",)


def test_an_answered_loop_is_closed_by_the_next_answer() -> None:
    """Its calls are past then."""
    later = [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "Thanks."}]
    request = _parse(messages=[ASKED, MADE, ANSWERED, *later])
    assert request.open_calls == ()
    assert request.past_calls == ("toolu_1",)


@pytest.mark.parametrize(
    ("tool", "names"),
    [
        ({"name": "Read", "input_schema": {}}, ("Read",)),
        ({"type": "custom", "name": "Read", "input_schema": {}}, ("Read",)),
        ({"type": "web_search_20250305", "name": "web_search"}, ("web_search",)),
        ({"type": "web_search_20250305", "name": "Read"}, ("web_search", "Read")),
        ({"type": "bash_20250124", "name": "bash"}, ("bash",)),
        (
            {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
            ("text_editor", "str_replace_based_edit_tool"),
        ),
        ({"type": "mcp_toolset", "mcp_server_name": "tracker"}, ("mcp:tracker/*",)),
    ],
)
def test_tools_are_declared_by_name_and_by_type(tool: JsonObject, names: tuple[str, ...]) -> None:
    """A tool that the provider runs cannot pass under another tool's name."""
    assert tuple(tool.name for tool in _parse(tools=[tool]).tools) == names


@pytest.mark.parametrize(
    ("choice", "read"),
    [
        ({"type": "auto"}, "auto"),
        ({"type": "any", "disable_parallel_tool_use": True}, "required"),
        ({"type": "none"}, "none"),
        ({"type": "tool", "name": "Read"}, "Read"),
        (None, "auto"),
    ],
)
def test_a_tool_choice_is_read(choice: JsonObject | None, read: str) -> None:
    """In our words."""
    tools = [{"name": "Read", "input_schema": {}}]
    assert _parse(tools=tools, tool_choice=choice).tool_choice == read


@pytest.mark.parametrize(
    ("thinking", "read"),
    [
        ({"type": "enabled", "budget_tokens": 2048}, True),
        ({"type": "adaptive"}, True),
        ({"type": "disabled"}, False),
        (None, None),
    ],
)
def test_thinking_is_read(thinking: JsonObject | None, read: bool | None) -> None:
    """The gateway's own field goes before it."""
    assert _parse(thinking=thinking).thinking is read
    assert _parse(thinking=thinking, extended_thinking=True).thinking is True


@pytest.mark.parametrize(
    "fields",
    [
        {"output_config": {"format": {"type": "json_schema", "schema": {}}}},
        {"output_format": {"type": "json_schema", "schema": {}}},
    ],
)
def test_a_schema_is_seen_where_either_version_of_the_api_has_it(fields: JsonObject) -> None:
    """The one of today and the one before."""
    assert _parse(**fields).wants_json_schema
    said = SHAPE.conversation(_parse(**fields))
    assert said.schema is not None
    assert said.schema.schema == {}


def test_media_count_at_a_flat_rate_not_by_their_size() -> None:
    """A screenshot of a megabyte is no quarter of a million tokens."""
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "a" * 1_000_000},
    }
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [image]}
    request = _parse(messages=[ASKED, MADE, {"role": "user", "content": [result]}])
    assert request.modalities == {"image"}
    assert 1_000 < request.input_tokens_estimate < 2_000


def test_a_document_of_plain_text_is_no_file() -> None:
    """Any model can read it."""
    source = {"type": "text", "media_type": "text/plain", "data": "Once upon a time"}
    block = {"type": "document", "title": "tale.txt", "source": source}
    request = _parse(messages=[{"role": "user", "content": [block]}])
    assert request.modalities == frozenset()
    (turn,) = SHAPE.conversation(request).turns
    assert "Once upon a time" in str(turn.parts)


def test_what_the_client_says_to_anthropic_in_headers_is_kept() -> None:
    """Version and beta features, nothing else."""
    sent = {
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "context-management-2025-06-27",
        "x-api-key": "tk-secret",
        "user-agent": "claude-cli/2.1.0 (external, cli)",
    }
    assert set(_parse(sent).headers) == {"anthropic-version", "anthropic-beta"}


@pytest.mark.parametrize(
    ("headers", "fields", "session"),
    [
        ({"x-claude-code-session-id": "s1"}, {"metadata": {"user_id": "u1"}}, "s1"),
        ({}, {"metadata": {"user_id": "user_a_session_s2"}}, "user_a_session_s2"),
        ({"x-claude-code-session-id": "s1"}, {"routing": {"session": "s3"}}, "s3"),
        ({}, {}, None),
    ],
)
def test_the_session_is_found_where_claude_code_says_it(
    headers: dict[str, str], fields: JsonObject, session: str | None
) -> None:
    """Routing first, then the header, then the user id."""
    assert _parse(headers, **fields).session == session


def test_the_topic_is_what_was_asked_last_not_the_tool_results() -> None:
    """Results alone ask nothing."""
    answered = {"role": "user", "content": ANSWERED["content"][:1]}
    request = _parse(system="Be kind.", messages=[ASKED, MADE, answered])
    assert request.topic.split() == ["Be", "kind.", "Read", "a.py"]


def test_nothing_to_generate_is_a_request_too() -> None:
    """`max_tokens` 0 fills the cache; other shapes are asked for one token."""
    request = _parse(max_tokens=0)
    assert request.max_tokens == 0
    assert SHAPE.conversation(request).sampling.max_tokens == 1


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"model": None}, "model"),
        ({"model": ""}, "model"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages.0.role"),
        ({"messages": [{"role": "user", "content": 7}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": [7]}]}, "messages.0.content.0"),
        ({"messages": [{"role": "user", "content": [{}]}]}, "messages.0.content.0.type"),
        (
            {"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]},
            "messages.0.content.0.tool_use_id",
        ),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"tools": [{"input_schema": {}}]}, "tools.0.name"),
        ({"tool_choice": {"type": "tool", "name": "f"}}, "tool_choice"),
        ({"tool_choice": {"type": "maybe"}}, "tool_choice.type"),
        ({"thinking": True}, "thinking"),
        ({"routing": {"speed": 1}}, "routing.speed"),
        ({"thread": {"type": "create"}}, "thread"),
    ],
)
def test_a_wrong_field_is_named(fields: JsonObject, param: str) -> None:
    """400, with its path."""
    assert _refusal(**fields).param == param


def test_counting_needs_no_limit_and_never_streams() -> None:
    """Nothing is generated."""
    body = {"model": "auto", "messages": [ASKED], "stream": True}
    request = SHAPE.parse_count(orjson.dumps(body), {"idempotency-key": "k"})
    assert not request.stream
    assert request.idempotency_key is None
