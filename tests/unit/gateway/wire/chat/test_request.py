"""Bytes of a chat completions request become an `InferenceRequest`, or a clear 400."""

from typing import Any

import orjson
import pytest

from turnout.core.inference import RoutingAsk
from turnout.errors import GatewayError
from turnout.gateway.exchange import DeclaredTool, InferenceRequest
from turnout.gateway.wire.chat.request import parse_request

HELLO = [{"role": "user", "content": "Hello"}]
READ_FILE = {"type": "function", "function": {"name": "read_file", "parameters": {}}}


def _parse(headers: dict[str, str] | None = None, **fields: Any) -> InferenceRequest:
    body = {"model": "auto", "messages": HELLO, **fields}
    return parse_request(orjson.dumps(body), headers or {})


def _refusal(raw: bytes) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        parse_request(raw, {})
    return caught.value


def test_fields_that_we_do_not_know_stay_in_the_body() -> None:
    """What a provider may understand is none of our business."""
    request = _parse(reasoning_effort="low", x_vendor={"deep": [1, None]})
    assert request.body["reasoning_effort"] == "low"
    assert request.body["x_vendor"] == {"deep": [1, None]}


def test_our_extensions_are_read_and_taken_out_of_the_body() -> None:
    """No upstream ever sees `routing` or `extended_thinking`."""
    routing = {"optimize": "quality", "task": "coding", "session": "run-1"}
    request = _parse(routing=routing, extended_thinking=False)
    assert request.ask == RoutingAsk(optimize="quality", task="coding", session="run-1")
    assert (request.session, request.thinking) == ("run-1", False)
    assert set(request.body) == {"model", "messages"}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"model": ""}, "model"),
        ({"model": None}, "model"),
        ({"model": "x" * 257}, "model"),
        ({"messages": []}, "messages"),
        ({"messages": {}}, "messages"),
        ({"messages": ["hi"]}, "messages[0]"),
        ({"messages": [{"content": "hi"}]}, "messages[0].role"),
        ({"messages": [*HELLO, {"role": "tool", "content": ""}]}, "messages[1].tool_call_id"),
        ({"stream": "yes"}, "stream"),
        ({"stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_completion_tokens": True}, "max_completion_tokens"),
        ({"max_completion_tokens": 5, "max_tokens": "9"}, "max_tokens"),
        ({"n": 0}, "n"),
        ({"n": "5"}, "n"),
        ({"n": 1.5}, "n"),
        ({"models": ["auto", "dear"]}, "models"),
        ({"plugins": [{}]}, "plugins[0].id"),
        ({"tools": [{"function": {"name": "f"}}]}, "tools[0].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].function.name"),
        ({"functions": [{}]}, "functions[0].name"),
        ({"functions": [{"name": "f"}] * 1_025}, "tools"),
        ({"tool_choice": "maybe"}, "tool_choice"),
        (
            {"tool_choice": {"type": "function", "function": {"name": "gone"}}},
            "tool_choice",
        ),
        ({"routing": "fast"}, "routing"),
        ({"routing": {"optimise": "cost"}}, "routing.optimise"),
        ({"routing": {"optimize": "speed"}}, "routing.optimize"),
        ({"routing": {"task": 3}}, "routing.task"),
        ({"routing": {"session": "x" * 513}}, "routing.session"),
        ({"routing": {"session": "a\nb"}}, "routing.session"),
        ({"extended_thinking": "on"}, "extended_thinking"),
    ],
)
def test_a_wrong_field_is_named_in_the_refusal(fields: dict[str, Any], param: str) -> None:
    """A 400 says which field to mend."""
    error = _refusal(orjson.dumps({"model": "auto", "messages": HELLO, **fields}))
    assert (error.status, error.code, error.param) == (400, "invalid_request", param)
    assert param.split("[")[0].split(".")[0] in error.message


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"[]", b'"x"', b"\xff\xfe", b"[" * 2_000 + b"]" * 2_000],
    ids=["empty", "cut", "list", "string", "no utf-8", "deep"],
)
def test_a_body_that_is_no_object_is_refused(raw: bytes) -> None:
    """Whatever bytes come, the answer is a 400."""
    assert _refusal(raw).status == 400


def test_a_body_too_deep_to_send_on_is_refused() -> None:
    """What could be read but not written again must not fail later."""
    deep = b'{"model":"auto","messages":[{"role":"user","content":' + b"[" * 400 + b"]" * 400
    assert "deeper" in _refusal(deep + b"}]}").message


def test_a_near_name_is_offered() -> None:
    """A spelling mistake costs one look, not a search."""
    error = _refusal(orjson.dumps({"model": "m", "messages": HELLO, "routing": {"optimise": "x"}}))
    assert error.mend == "Did you mean `optimize`?"


def test_the_results_that_end_the_conversation_are_the_open_calls() -> None:
    """Only trailing tool messages hold the loop open; earlier ones are answered history."""
    calls = [{"role": "tool", "tool_call_id": name, "content": ""} for name in "abc"]
    said = {"role": "assistant", "content": "so"}
    assert _parse(messages=[*HELLO, calls[0], said, calls[1], calls[2]]).open_calls == ("b", "c")
    assert _parse(messages=[*HELLO, calls[0], said]).open_calls == ()


def test_tools_are_found_by_whichever_field_declares_them() -> None:
    """A tool that policy does not see could not be governed."""
    request = _parse(
        tools=[
            READ_FILE,
            {"type": "custom", "custom": {"name": "grep"}},
            {"type": "shell"},
        ],
        functions=[{"name": "old_style"}],
        web_search_options={},
    )
    names = ["read_file", "grep", "shell", "old_style", "web_search"]
    assert request.tools == tuple(map(DeclaredTool, names))


@pytest.mark.parametrize(
    ("choice", "read"),
    [
        (None, "auto"),
        ("none", "none"),
        ("required", "required"),
        ({"type": "function", "function": {"name": "read_file"}}, "read_file"),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "required"}}, "required"),
    ],
)
def test_every_form_of_tool_choice_is_read(choice: Any, read: str) -> None:
    """The choice is one word, whichever form it came in."""
    assert _parse(tools=[READ_FILE], tool_choice=choice).tool_choice == read


@pytest.mark.parametrize(
    ("headers", "fields", "session"),
    [
        ({"x-session-id": "h"}, {"routing": {"session": "r"}}, "r"),
        ({"x-session-id": "h", "session-id": "s"}, {"prompt_cache_key": "p"}, "h"),
        ({"x-claude-code-session-id": "c", "session_id": "s"}, {}, "c"),
        ({"session_id": "s"}, {"metadata": {"user_id": "u"}}, "s"),
        ({}, {"metadata": {"user_id": "u"}, "prompt_cache_key": "p"}, "u"),
        ({}, {"metadata": {"other": "x"}, "prompt_cache_key": "p"}, "p"),
        ({}, {}, None),
    ],
)
def test_the_session_is_the_first_one_found(
    headers: dict[str, str], fields: dict[str, Any], session: str | None
) -> None:
    """Routing object, then headers, then body."""
    assert _parse(headers, **fields).session == session


def test_the_call_kind_and_the_idempotency_key_come_from_headers() -> None:
    """Our own agent says what kind of step a call belongs to."""
    request = _parse({"x-turnout-call-kind": "plan", "idempotency-key": "k1"})
    assert (request.call_kind, request.idempotency_key) == ("plan", "k1")
    with pytest.raises(GatewayError, match="x-turnout-call-kind"):
        _parse({"x-turnout-call-kind": "planning"})


def test_an_image_counts_at_a_flat_rate() -> None:
    """Base64 says nothing about tokens."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 400_000}}
    request = _parse(messages=[{"role": "user", "content": [{"type": "text", "text": "?"}, image]}])
    assert 1_000 < request.input_tokens_estimate < 1_100


@pytest.mark.parametrize(
    ("choice", "read"), [("auto", "auto"), ("none", "none"), ({"name": "look"}, "look")]
)
def test_the_choice_of_the_old_form_is_read(choice: Any, read: str) -> None:
    """It was called after the field of the answer."""
    request = _parse(functions=[{"name": "look"}], function_call=choice)
    assert (request.tool_choice, request.body["function_call"]) == (read, choice)


@pytest.mark.parametrize("choice", ["always", {"name": "other"}, 7])
def test_a_choice_of_the_old_form_that_names_nothing_is_refused(choice: Any) -> None:
    """As one of the new form is."""
    body = {"model": "m", "messages": HELLO, "functions": [{"name": "look"}]}
    refusal = _refusal(orjson.dumps({**body, "function_call": choice}))
    assert (refusal.status, refusal.param) == (400, "function_call")


def test_what_a_conversation_holds_beside_text_is_known() -> None:
    """The decision leaves out who cannot see or hear; unknown parts are the provider's."""
    parts = [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": "data:x"}},
        {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
        {"type": "vendor_part"},
    ]
    request = _parse(messages=[{"role": "user", "content": parts}])
    assert request.modalities == {"image", "audio"}


def test_every_past_call_is_known_by_its_id() -> None:
    """Thoughts are found by them."""
    made = [
        {"role": "assistant", "tool_calls": [{"id": name, "type": "function"}]} for name in "ab"
    ]
    results = [{"role": "tool", "tool_call_id": name, "content": ""} for name in "ab"]
    request = _parse(messages=[*HELLO, made[0], results[0], made[1], results[1]])
    assert (request.past_calls, request.open_calls) == (("a", "b"), ("b",))


def test_what_a_request_is_about_is_kept_where_it_names_no_task() -> None:
    """The instructions and the last question, for the classifier."""
    said = [{"role": "system", "content": "You code."}, *HELLO, {"role": "user", "content": "Fix."}]
    assert _parse(messages=said).topic == "You code.\nFix."
    assert _parse(messages=said, routing={"task": "coding"}).topic == ""


def test_the_narrowing_of_a_request_is_read() -> None:
    """Fewer tools, and none that change anything."""
    request = _parse(routing={"tools": ["read_file"], "read_only": True})
    assert (request.ask.tools, request.ask.read_only) == (("read_file",), True)


@pytest.mark.parametrize("tools", ["read_file", [1], [""], ["x"] * 1_025])
def test_a_list_of_tools_that_is_none_is_refused(tools: Any) -> None:
    """With the place that is wrong."""
    body = {"model": "m", "messages": HELLO, "routing": {"tools": tools}}
    refusal = _refusal(orjson.dumps(body))
    assert refusal.status == 400
    assert (refusal.param or "").startswith("routing.tools")


@pytest.mark.parametrize("role", [[], {}, 7, ""])
def test_a_role_that_is_none_is_refused(role: Any) -> None:
    """Whatever stands there."""
    body = {"model": "m", "messages": [{"role": role, "content": "x"}]}
    assert _refusal(orjson.dumps(body)).param == "messages[0].role"


def test_of_two_limits_on_the_answer_the_higher_counts() -> None:
    """An upstream may heed either, and what it may cost is reserved."""
    assert _parse(max_completion_tokens=1, max_tokens=9).max_tokens == 9
    assert _parse(max_completion_tokens=9, max_tokens=1).max_tokens == 9


@pytest.mark.parametrize("kind", ["web_search", "shell"])
def test_a_tool_of_the_provider_goes_by_its_type(kind: str) -> None:
    """A name inside of it, that a list may hold, does not stand for it."""
    request = _parse(tools=[{"type": kind, kind: {"name": "read_file"}}, READ_FILE])
    assert request.tools == (DeclaredTool(kind), DeclaredTool("read_file"))


@pytest.mark.parametrize(
    ("fields", "tools"),
    [
        ({"web_search_options": {}}, ["web_search"]),
        ({"search_parameters": {"mode": "on"}}, ["web_search"]),
        ({"enable_search": True}, ["web_search"]),
        ({"mcp_servers": [{"url": "https://tools.example.org"}]}, ["mcp"]),
        ({"plugins": [{"id": "web"}, {"id": "file-parser"}]}, ["web", "file-parser"]),
        ({"enable_search": False, "mcp_servers": [], "plugins": None, "models": None}, []),
    ],
)
def test_tools_that_a_field_switches_on_are_declared(
    fields: dict[str, Any], tools: list[str]
) -> None:
    """A list of tools is for these too."""
    assert [tool.name for tool in _parse(**fields).tools] == tools


def test_a_tool_of_two_names_is_refused() -> None:
    """Policy could judge one of them, and a provider read the other."""
    tool = {"type": "function", "name": "shell", "function": {"name": "read_file"}}
    with pytest.raises(GatewayError, match="another name"):
        _parse(tools=[tool])


def test_functions_that_stand_for_tools_of_servers_are_read() -> None:
    """Under the names that policies have for them."""
    ask = _parse(routing={"mcp_tools": {"mcp__git__push": "git/push"}}).ask
    assert ask.policy_name("mcp__git__push") == "mcp:git/push"
    assert ask.policy_name("read_file") == "read_file"


@pytest.mark.parametrize(
    "named",
    [
        {"shell": "git/push"},
        {"mcp__git__log": "git/push"},
        {"mcp__git__push": "git"},
        {"mcp____push": "/push"},
        {"mcp__git__push": ["git/push"]},
        {f"mcp__git__t{number}": f"git/t{number}" for number in range(1_025)},
        ["git/push"],
    ],
)
def test_a_function_cannot_pass_as_another_tool(named: Any) -> None:
    """Its name has to be the tool's: what reports say of the one holds for the other."""
    with pytest.raises(GatewayError) as refused:
        _parse(routing={"mcp_tools": named})
    assert refused.value.status == 400
    assert "routing.mcp_tools" in str(refused.value)
