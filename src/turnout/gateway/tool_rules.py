"""Which tools a request may declare, before any model is chosen."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from turnout.core.inference import StepKind
from turnout.core.policies import ToolRule
from turnout.core.tools import MCP
from turnout.errors import GatewayError
from turnout.gateway.exchange import InferenceRequest

__all__ = ["ToolJudgement", "judge", "judge_request", "refuse_tools"]

_ALL = "/*"
_MANY = 300


@dataclass(frozen=True, slots=True)
class ToolJudgement:
    """What a tool rule says of the tools that a request declares."""

    refused: str | None
    """The first tool that may not be declared; None where the request may pass."""
    outside: tuple[str, ...]
    """Every declared tool that the policy's list lacks, each once, as declared; for the receipt.
    What only the request's own wish rules out is not among them."""
    why: str = ""
    """Which list lacks the refused tool, as the end of a sentence; empty where none is refused."""


_PASSES = ToolJudgement(None, ())


def judge_request(rule: ToolRule, request: InferenceRequest) -> ToolJudgement:
    """Judge what a request declares, by the list for its kind of step and by its own wish.

    A request may ask for less than the policy allows (`routing.tools`, `routing.read_only`):
    what it rules out is refused in every mode. It cannot ask for more.
    """
    ask = request.ask
    if not request.tools and ask.tools is None:
        return _PASSES
    declared = [ask.policy_name(tool.name) for tool in request.tools]
    if ask.read_only and (beyond := _outside(rule.read_only, declared)):
        own = judge(rule, declared, request.call_kind).outside
        return ToolJudgement(beyond[0], own, "is not one that the policy lists as read-only")
    if ask.tools is not None:
        if beyond := _outside(ask.tools, declared):
            own = judge(rule, declared, request.call_kind).outside
            return ToolJudgement(beyond[0], own, "is not among the request's `routing.tools`")
        if rule.mode == "enforce":
            declared += ask.tools
    return judge(rule, declared, request.call_kind)


def judge(rule: ToolRule, declared: Sequence[str], kind: StepKind | None = None) -> ToolJudgement:
    """Judge the declared names: exactly as listed, or under a listed `mcp:server/*`.

    `kind` is the kind of step that the request is of; None where it does not say.
    """
    if rule.mode == "any":
        return _PASSES
    outside = _outside(_list_for(rule, kind), declared)
    if not outside:
        return _PASSES
    if rule.mode == "dry_run":
        return ToolJudgement(None, outside)
    step = f" for {kind} steps" if kind in dict(rule.by_kind) else ""
    return ToolJudgement(outside[0], outside, f"is not on the policy's list{step}")


def refuse_tools(judgement: ToolJudgement) -> None:
    """Raise the refusal (403) of a request that declares what it may not."""
    if judgement.refused is not None:
        raise GatewayError(
            f"The tool `{judgement.refused}` is not allowed: it {judgement.why}.",
            status=403,
            code="tool_not_allowed",
            mend="Leave it out of the request, or have the policy list it.",
            param="tools",
        )


def _list_for(rule: ToolRule, kind: StepKind | None) -> tuple[str, ...]:
    if kind is not None:
        for of_kind, names in rule.by_kind:
            if of_kind == kind:
                return names
    return rule.allow


def _outside(allow: Sequence[str], declared: Sequence[str]) -> tuple[str, ...]:
    # A set pays off only where much is looked up in it.
    listed = allow if len(allow) * len(declared) < _MANY else frozenset(allow)
    outside = [name for name in declared if name not in listed and not _of(name, listed)]
    return tuple(dict.fromkeys(outside)) if outside else ()


def _of(name: str, listed: Collection[str]) -> bool:
    """Whether a whole server is listed that the tool is of.

    A request for all tools of a server passes where any of them is listed: the gateway shows the
    model only those that are.
    """
    if not name.startswith(MCP):
        return False
    server, slash, tool = name.partition("/")
    if not (slash and tool) or server == MCP:
        return False
    if f"{server}{_ALL}" in listed:
        return True
    return tool == "*" and any(entry.startswith(f"{server}/") for entry in listed)
