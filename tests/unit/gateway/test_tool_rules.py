"""A tool rule judges names, before a model is chosen."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.core.inference import RoutingAsk
from turnout.core.policies import ToolMode, ToolRule
from turnout.errors import GatewayError
from turnout.gateway.exchange import DeclaredTool
from turnout.gateway.tool_rules import ToolJudgement, judge, judge_request, refuse_tools
from turnout.testing.exchange import PLAIN_REQUEST

NAMES = st.lists(st.sampled_from(["read_file", "run_tests", "shell", "mcp:git/push", ""]))


def test_enforce_refuses_the_first_tool_outside_the_list() -> None:
    """The refusal names a tool, the receipt gets all of them once."""
    rule = ToolRule("enforce", ("read_file",))
    judged = judge(rule, ["read_file", "shell", "curl", "shell"])
    assert judged == ToolJudgement("shell", ("shell", "curl"), "is not on the policy's list")


def test_a_dry_run_records_and_lets_pass() -> None:
    """The list is judged and nothing is refused."""
    judged = judge(ToolRule("dry_run", ("read_file",)), ["shell"])
    assert judged == ToolJudgement(None, ("shell",))


def test_any_knows_no_outside() -> None:
    """Without a list nothing is outside of it."""
    assert judge(ToolRule("any", ("read_file",)), ["shell"]) == ToolJudgement(None, ())


@pytest.mark.parametrize(
    ("entry", "name", "admitted"),
    [
        ("read_file", "read_file", True),
        ("read_file", "Read_File", False),
        ("read_file", "read_file2", False),
        ("read_*", "read_file", False),
        ("*", "read_file", False),
        ("mcp:git/*", "mcp:git/push", True),
        ("mcp:git/*", "mcp:git/", False),
        ("mcp:git/*", "mcp:github/push", False),
        ("mcp:*", "mcp:git/push", False),
        ("mcp:/*", "mcp:/push", False),
        ("mcp:git/*", "mcp:git/*", True),
    ],
)
def test_names_match_exactly_and_servers_as_a_whole(entry: str, name: str, admitted: bool) -> None:
    """Only a pattern of a whole MCP server stands for more than itself."""
    assert (judge(ToolRule("enforce", (entry,)), [name]).refused is None) == admitted


@given(mode=st.sampled_from(["any", "dry_run", "enforce"]), allow=NAMES, declared=NAMES)
def test_only_enforce_refuses_and_only_what_is_outside(
    mode: ToolMode, allow: list[str], declared: list[str]
) -> None:
    """What is refused is outside; what is listed is not."""
    judged = judge(ToolRule(mode, tuple(allow)), declared)
    assert (judged.refused is not None) == (mode == "enforce" and bool(judged.outside))
    assert judged.refused is None or judged.refused == judged.outside[0]
    assert not set(judged.outside) & set(allow)
    assert set(judged.outside) <= set(declared)


def declaring(*names, ask=None, kind=None):
    """Return a request that declares tools."""
    tools = tuple(DeclaredTool(name) for name in names)
    return replace(PLAIN_REQUEST, tools=tools, ask=ask or RoutingAsk(), call_kind=kind)


def test_steps_of_one_kind_have_a_list_of_their_own() -> None:
    """A review may read; what else the policy allows is for other steps."""
    rule = ToolRule("enforce", ("read_file", "apply_patch"), (("review", ("read_file",)),))
    assert judge_request(rule, declaring("apply_patch")).refused is None
    assert judge_request(rule, declaring("apply_patch", kind="act")).refused is None
    judged = judge_request(rule, declaring("read_file", "apply_patch", kind="review"))
    assert (judged.refused, judged.why) == (
        "apply_patch",
        "is not on the policy's list for review steps",
    )


def test_a_tool_without_a_name_is_judged_by_its_type() -> None:
    """It is on the list under its type, or it is outside of it."""
    assert judge_request(ToolRule("enforce", ("read_file",)), declaring("web_search")).refused
    assert judge_request(ToolRule("enforce", ("web_search",)), declaring("web_search")) == (
        ToolJudgement(None, ())
    )


@pytest.mark.parametrize("mode", ["any", "dry_run", "enforce"])
def test_a_request_may_ask_for_fewer_tools(mode: ToolMode) -> None:
    """What it rules out is refused in whatever mode, and is no tool outside the policy's list."""
    rule = ToolRule(mode, ("read_file", "apply_patch"))
    ask = RoutingAsk(tools=("read_file",))
    assert judge_request(rule, declaring("read_file", ask=ask)) == ToolJudgement(None, ())
    judged = judge_request(rule, declaring("read_file", "apply_patch", ask=ask))
    assert judged.refused == "apply_patch"
    assert judged.outside == ()


@pytest.mark.parametrize("declared", [(), ("shell",)])
def test_a_request_cannot_ask_for_more_tools(declared: tuple[str, ...]) -> None:
    """Even where it declares none of them, the wish itself is refused."""
    rule = ToolRule("enforce", ("read_file",))
    ask = RoutingAsk(tools=("read_file", "shell"))
    assert judge_request(rule, declaring(*declared, ask=ask)).refused == "shell"


@pytest.mark.parametrize("mode", ["any", "dry_run", "enforce"])
def test_a_read_only_request_has_the_tools_that_change_nothing(mode: ToolMode) -> None:
    """The policy says which these are; where it says nothing, there are none."""
    ask = RoutingAsk(read_only=True)
    rule = ToolRule(mode, ("read_file", "apply_patch"), (), ("read_file", "mcp:git/*"))
    allowed = judge_request(rule, declaring("read_file", ask=ask))
    assert allowed.refused is None
    assert judge_request(rule, declaring("apply_patch", ask=ask)).refused == "apply_patch"
    none_listed = judge_request(ToolRule(mode, ("read_file",)), declaring("read_file", ask=ask))
    assert none_listed.refused == "read_file"
    enforced = judge_request(rule, declaring("mcp:git/log", ask=ask)).refused
    assert enforced == ("mcp:git/log" if mode == "enforce" else None)


def test_a_function_that_stands_for_a_tool_of_a_server_is_judged_as_that_tool() -> None:
    """The client runs the server and shows its model a function; policy speaks of the tool."""
    ask = RoutingAsk(mcp_tools={"mcp__git__push": "mcp:git/push", "mcp__git__log": "mcp:git/log"})
    request = declaring("mcp__git__log", "mcp__git__push", ask=ask)
    judged = judge_request(ToolRule("enforce", ("mcp:git/log",)), request)
    assert (judged.refused, judged.outside) == ("mcp:git/push", ("mcp:git/push",))
    assert judge_request(ToolRule("enforce", ("mcp:git/*",)), request).refused is None
    assert judge_request(ToolRule("enforce", ("mcp__git__log",)), request).refused == "mcp:git/log"


def test_the_refusal_names_the_tool_and_the_list() -> None:
    """Status 403, before any model was chosen."""
    judged = judge(ToolRule("enforce", ("read_file",)), ["shell"])
    with pytest.raises(GatewayError, match=r"`shell` is not allowed.*the policy's list") as caught:
        refuse_tools(judged)
    assert (caught.value.status, caught.value.code) == (403, "tool_not_allowed")
    refuse_tools(ToolJudgement(None, ("shell",)))


NAMES_ASKED = st.none() | NAMES.map(tuple)


@given(
    mode=st.sampled_from(["any", "dry_run", "enforce"]),
    allow=NAMES,
    read_only=NAMES,
    declared=NAMES,
    ask=st.builds(RoutingAsk, tools=NAMES_ASKED, read_only=st.booleans()),
)
def test_no_wish_of_a_request_lets_more_pass(
    mode: ToolMode,
    allow: list[str],
    read_only: list[str],
    declared: list[str],
    ask: RoutingAsk,
) -> None:
    """What is refused without a wish is refused with every wish."""
    rule = ToolRule(mode, tuple(allow), (), tuple(read_only))
    plain = judge_request(rule, declaring(*declared))
    asked = judge_request(rule, declaring(*declared, ask=ask))
    assert plain.refused is None or asked.refused is not None
