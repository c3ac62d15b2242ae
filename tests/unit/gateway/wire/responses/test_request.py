"""Requests of the responses shape, as the Agents SDK, Codex and others send them."""

import orjson
import pytest
from tests.unit.gateway.wire.responses.samples import BY, SHAPE, request

from turnout.errors import GatewayError
from turnout.gateway.dialog.conversation import Call, Media, Reasoning, Result, Text, Turn
from turnout.gateway.wire.responses.seal import Seal

USER = {"role": "user", "content": "Do it."}
CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a":1}'}
OTHER = {**CALL, "call_id": "c2"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "one"}
OTHER_OUTPUT = {**OUTPUT, "call_id": "c2", "output": "two"}


def turns(*items: dict[str, object]) -> tuple[Turn, ...]:
    """Return what the items come to."""
    return SHAPE.conversation(request(input=list(items))).turns


def test_a_text_as_input_is_what_the_user_says():
    """The standing instructions come before it."""
    said = SHAPE.conversation(request(input="Hi", instructions="Be brief."))
    assert said.turns == (Turn("system", (Text("Be brief."),)), Turn("user", (Text("Hi"),)))


def test_the_results_that_end_the_input_are_of_open_calls():
    """They bind the request to the model that made the calls."""
    asked = request(input=[USER, CALL, OTHER, OUTPUT, OTHER_OUTPUT])
    assert asked.open_calls == ("c1", "c2")
    assert asked.past_calls == ("c1", "c2")
    free = request(input=[USER, CALL, OUTPUT, USER])
    assert free.open_calls == ()


@pytest.mark.cases
def test_calls_side_by_side_are_one_answer():
    """Not one answer each, and each with its own result."""
    said = turns(USER, CALL, OTHER, OUTPUT, OTHER_OUTPUT)
    assert [turn.role for turn in said] == ["user", "assistant", "user"]
    assert [part.id for part in said[1].parts if isinstance(part, Call)] == ["c1", "c2"]
    assert [part.call_id for part in said[2].parts if isinstance(part, Result)] == ["c1", "c2"]


@pytest.mark.cases
def test_the_whole_history_is_said():
    """Every message, not the last one alone."""
    answer = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "No."}],
    }
    said = turns(USER, CALL, OUTPUT, answer, USER)
    assert [turn.role for turn in said] == ["user", "assistant", "user", "assistant", "user"]


@pytest.mark.cases
@pytest.mark.parametrize(
    ("items", "named"),
    [
        ([USER, CALL], "c1"),
        ([USER, CALL, OTHER, OUTPUT], "c2"),
        ([USER, OUTPUT], "c1"),
        ([USER, OUTPUT, CALL], "c1"),
        ([USER, CALL, OUTPUT, OUTPUT], "c1"),
    ],
)
def test_a_call_without_its_result_is_refused_by_name(items, named):
    """Here, in words that say which call, before any provider is asked."""
    with pytest.raises(GatewayError, match=f"`{named}`") as caught:
        request(input=items)
    assert caught.value.status == 400


@pytest.mark.cases
def test_a_message_between_a_call_and_its_result_moves_behind_the_result():
    """What belongs together is certain; providers insist on the order."""
    said = turns(USER, CALL, {"role": "user", "content": "Hurry."}, OUTPUT)
    assert [turn.role for turn in said] == ["user", "assistant", "user", "user"]
    assert isinstance(said[2].parts[0], Result)
    assert said[3].parts == (Text("Hurry."),)


@pytest.mark.cases
def test_tools_in_every_place_and_form_reach_policy_and_model():
    """Items bring tools, too; a namespace gives its tools its name."""
    function = {"type": "function", "name": "js", "parameters": {"type": "object"}}
    patch = {
        "type": "custom",
        "name": "exec",
        "format": {"type": "grammar", "syntax": "lark", "definition": "start: A"},
    }
    space = {"type": "namespace", "name": "mcp__node__", "tools": [function]}
    asked = request(
        input=[
            {
                "type": "additional_tools",
                "role": "developer",
                "tools": [{"type": "namespace", "name": "functions", "tools": [patch]}],
            },
            USER,
        ],
        tools=[
            space,
            {"type": "local_shell"},
            {"type": "web_search_preview_2025_03_11"},
            {"type": "tool_search", "execution": "client"},
        ],
    )
    names = ["mcp__node__js", "local_shell", "web_search_preview", "tool_search", "functions__exec"]
    assert [tool.name for tool in asked.tools] == names
    specs = SHAPE.conversation(asked).tools
    assert [spec.name for spec in specs] == names
    assert [spec.type for spec in specs][-1] == "custom"
    assert "start: A" in specs[-1].description
    assert [spec.name for spec in specs if spec.foreign] == ["web_search_preview"]


@pytest.mark.cases
def test_tools_that_a_search_found_can_be_called():
    """The output of a tool search declares what it found."""
    search = {
        "type": "tool_search_call",
        "call_id": "s",
        "execution": "client",
        "arguments": {"query": "x"},
    }
    found = {
        "type": "tool_search_output",
        "call_id": "s",
        "tools": [{"type": "function", "name": "late"}],
    }
    asked = request(input=[USER, search, found])
    assert [tool.name for tool in asked.tools] == ["late"]
    said = SHAPE.conversation(asked)
    assert said.turns[1].parts == (Call("s", "tool_search", '{"query":"x"}'),)
    result = said.turns[2].parts[0]
    assert isinstance(result, Result)
    assert "late" in result.parts[0].text


@pytest.mark.cases
def test_custom_calls_and_their_outputs_are_calls():
    """A free text is the argument."""
    call = {
        "type": "custom_tool_call",
        "call_id": "c1",
        "name": "apply_patch",
        "input": "*** Begin",
    }
    output = {"type": "custom_tool_call_output", "call_id": "c1", "output": "Done"}
    said = turns(USER, call, output)
    assert said[1].parts == (Call("c1", "apply_patch", "*** Begin", "custom"),)
    assert said[2].parts == (Result("c1", (Text("Done"),), type="custom"),)


def test_a_shell_that_the_client_runs_is_a_call_like_any_other():
    """Its action is the arguments, without what is always the same."""
    action = {"type": "exec", "command": ["ls"], "env": {}}
    said = turns(
        USER,
        {
            "type": "local_shell_call",
            "id": "l",
            "call_id": "c1",
            "status": "completed",
            "action": action,
        },
        {"type": "local_shell_call_output", "id": "c1", "call_id": "c1", "output": "a.py"},
    )
    assert said[1].parts == (Call("c1", "local_shell", '{"command":["ls"]}'),)
    assert said[2].parts == (Result("c1", (Text("a.py"),)),)


def test_a_choice_among_allowed_tools_leaves_the_others_out():
    """Models of other shapes are shown only what they may call."""
    tools = [{"type": "function", "name": name} for name in ("a", "b")]
    choice = {
        "type": "allowed_tools",
        "mode": "required",
        "tools": [{"type": "function", "name": "b"}],
    }
    asked = request(tools=tools, tool_choice=choice)
    assert asked.tool_choice == "required"
    assert [tool.name for tool in SHAPE.conversation(asked).tools] == ["b"]


def test_media_are_seen_and_said():
    """For the deployments that take them; their size is no text."""
    parts = [
        {"type": "input_text", "text": "See."},
        {
            "type": "input_image",
            "image_url": "data:image/png;base64," + "A" * 8_000,
            "detail": "low",
        },
        {
            "type": "input_file",
            "file_data": "data:application/pdf;base64,AA==",
            "filename": "a.pdf",
        },
    ]
    asked = request(input=[{"role": "user", "content": parts}])
    assert asked.modalities == {"image", "file"}
    assert asked.input_tokens_estimate < 2_200
    media = SHAPE.conversation(asked).turns[0].parts
    assert [part.kind for part in media if isinstance(part, Media)] == ["image", "file"]


@pytest.mark.parametrize(
    "item",
    [
        {"type": "item_reference", "id": "msg_1"},
        {"type": "compaction", "encrypted_content": "x"},
        {"role": "user", "content": [{"type": "input_image", "file_id": "file-1"}]},
        {"role": "user", "content": [{"type": "input_hologram"}]},
    ],
)
def test_what_no_other_shape_can_say_is_refused_only_there(item):
    """An upstream of this shape may understand it."""
    asked = request(input=[USER, item])
    assert SHAPE.prepare(asked, BY, None)["input"] == [USER, item]
    with pytest.raises(GatewayError, match="input\\[1\\]"):
        SHAPE.conversation(asked)


def test_items_that_we_do_not_know_pass_to_an_upstream_of_this_shape():
    """With every field of the request that we do not know."""
    new = {"type": "hologram_call", "id": "h", "beam": 1}
    body = SHAPE.prepare(request(input=[USER, new], novelty=2), BY, None)
    assert body["input"] == [USER, new]
    assert body["novelty"] == 2


def test_thoughts_go_back_to_their_maker_alone():
    """An upstream of this shape gets its own item as it was; others never see it."""
    ours = {"type": "reasoning", "id": "rs_1", "summary": []}
    mine = {**ours, "encrypted_content": Seal(BY.model, BY.id, encrypted="gAAA").write()}
    alien = {**ours, "encrypted_content": Seal("other", "q/other", encrypted="gBBB").write()}
    body = SHAPE.prepare(request(input=[mine, alien, USER]), BY, None)
    assert body["input"] == [{**ours, "encrypted_content": "gAAA"}, USER]


def test_thoughts_of_other_shapes_come_back_with_their_proof():
    """A signature of its maker survives the client."""
    said = [{"type": "summary_text", "text": "Hm."}]
    sealed = Seal("claude", signature="sig").write()
    thought = {"type": "reasoning", "summary": said, "encrypted_content": sealed}
    assert turns(thought, CALL, OUTPUT)[0].parts[0] == Reasoning("Hm.", "sig", "", "claude")


def test_the_same_request_gives_the_same_bytes():
    """Prompt caches live on that."""
    asked = request(input=[USER, CALL, OUTPUT], tools=[{"type": "function", "name": "f"}])
    said = SHAPE.conversation(asked)
    assert len({orjson.dumps(SHAPE.prepare(asked, BY, said)) for _ in range(3)}) == 1


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": []}, "input"),
        ({"input": 3}, "input"),
        ({"input": [3]}, "input[0]"),
        ({"input": [{}]}, "input[0].type"),
        ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user"}]}, "input[0].content"),
        ({"input": [{"role": "user", "content": [{}]}]}, "input[0].content[0].type"),
        ({"input": [{**CALL, "arguments": {}}]}, "input[0].arguments"),
        ({"input": [{**CALL, "name": ""}]}, "input[0].name"),
        ({"input": [{**OUTPUT, "output": 3}]}, "input[0].output"),
        ({"tools": [{"name": "f"}]}, "tools[0].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].name"),
        ({"tools": [{"type": "namespace", "name": "n", "tools": [{}]}]}, "tools[0].tools[0].type"),
        ({"tool_choice": {"type": "function", "name": "f"}}, "tool_choice"),
        ({"tool_choice": "maybe"}, "tool_choice"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"store": "yes"}, "store"),
        ({"background": True}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"instructions": 3}, "instructions"),
        ({"model": None}, "model"),
    ],
)
def test_what_is_wrong_is_named(fields, param):
    """400, and the field."""
    with pytest.raises(GatewayError) as caught:
        request(**fields)
    assert (caught.value.status, caught.value.param) == (400, param)


def test_a_stored_prompt_counts_as_a_tool():
    """It may bring tools that policy never sees: a list that is enforced has to name it."""
    asked = request(input="Hi", prompt={"id": "pmpt_1"})
    assert [tool.name for tool in asked.tools] == ["prompt"]
