"""The body of a request as one deployment of the messages shape needs it."""

from turnout.core.ids import ToolCallId
from turnout.core.json import JsonObject, JsonValue, as_object, as_objects, as_text
from turnout.gateway.catalog import Deployment
from turnout.gateway.dialog.conversation import Conversation
from turnout.gateway.exchange import InferenceRequest
from turnout.gateway.wire.messages.content.marks import with_marks
from turnout.gateway.wire.messages.content.parts import has_own_signature
from turnout.gateway.wire.messages.writing import write_conversation

__all__ = ["count_body", "prepare_body"]

_LEAST_BUDGET = 1_024
"""Tokens; a smaller thinking budget is refused."""
_NOT_WITH_THINKING = frozenset({"temperature", "top_k", "top_p"})
_COUNTED = frozenset(
    {"messages", "model", "output_config", "system", "thinking", "tool_choice", "tools"}
)
_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh"}


def prepare_body(
    request: InferenceRequest, deployment: Deployment, said: Conversation | None
) -> JsonObject:
    """Return the body: the client's own where `said` is None, else what it says."""
    body = _own(request, deployment) if said is None else _translated(request, deployment, said)
    if deployment.leaves_out:
        body = {name: value for name, value in body.items() if name not in deployment.leaves_out}
    if request.caching and deployment.caching == "marks":
        return with_marks(body, keep_system=said is None)
    return body


def count_body(request: InferenceRequest, deployment: Deployment) -> JsonObject:
    """Return the body that asks how many tokens a request of this shape sends."""
    body = prepare_body(request, deployment, None)
    return {name: value for name, value in body.items() if name in _COUNTED}


def _own(request: InferenceRequest, deployment: Deployment) -> dict[str, JsonValue]:
    body: dict[str, JsonValue] = {**request.body, "model": deployment.upstream_name}
    if "max_tokens" not in body:
        body["max_tokens"] = deployment.max_output
    messages = as_objects(body.get("messages"))
    cleaned = [message for each in messages if (message := _clean(each, request, deployment))]
    if cleaned:
        body["messages"] = cleaned
    if request.thinking is not None and "thinking" not in body:
        _think(body, deployment, request.thinking)
    return body


def _translated(
    request: InferenceRequest, deployment: Deployment, said: Conversation
) -> dict[str, JsonValue]:
    body = write_conversation(said, request, deployment)
    wanted = request.thinking
    if wanted is None and said.effort is not None:
        wanted = said.effort != "none"
    if wanted is not None:
        _think(body, deployment, wanted)
    if said.effort in _EFFORTS and as_object(body.get("thinking")).get("type") == "adaptive":
        config = as_object(body.get("output_config"))
        body["output_config"] = {**config, "effort": _EFFORTS[said.effort]}
    return body


def _think(body: dict[str, JsonValue], deployment: Deployment, wanted: bool) -> None:
    """Switch thinking on or off as the catalog says, where the request can have it so."""
    fields = dict(deployment.thinking_on if wanted else deployment.thinking_off)
    thinking = as_object(fields.get("thinking"))
    if thinking.get("type") == "enabled":
        limit = body["max_tokens"] if isinstance(body["max_tokens"], int) else 0
        budget = thinking.get("budget_tokens")
        budget = min(budget if isinstance(budget, int) else limit, limit - 1)
        if budget < _LEAST_BUDGET or _forces_a_call(body) or _began_without_thought(body):
            fields = dict(deployment.thinking_off)
        else:
            fields["thinking"] = {**thinking, "budget_tokens": budget}
    body |= fields
    if as_object(fields.get("thinking")).get("type") in {"adaptive", "enabled"}:
        for name in _NOT_WITH_THINKING & body.keys():
            del body[name]


def _forces_a_call(body: JsonObject) -> bool:
    return as_object(body.get("tool_choice")).get("type") in {"any", "tool"}


def _began_without_thought(body: JsonObject) -> bool:
    """Return whether a tool loop is open whose calls no thought precedes: it goes on so."""
    messages = as_objects(body.get("messages"))
    if len(messages) < 2:
        return False
    results = as_objects(messages[-1].get("content"))
    if not any(block.get("type") == "tool_result" for block in results):
        return False
    answer = as_objects(messages[-2].get("content"))
    return not answer or as_text(answer[0].get("type")) not in {"redacted_thinking", "thinking"}


def _clean(
    message: JsonObject, request: InferenceRequest, deployment: Deployment
) -> JsonObject | None:
    """Return a message without what an upstream refuses; None where nothing is left of it.

    Empty texts are refused, and thoughts whose maker speaks another shape.
    """
    content = message.get("content")
    if content is None or isinstance(content, str):
        return message if content else None
    blocks = as_objects(content)
    foreign = _is_foreign(blocks, request, deployment)
    kept = [b for b in blocks if not _is_empty(b) and not _is_refused(b, foreign, deployment)]
    if len(kept) == len(blocks):
        return message if blocks else None
    return {**message, "content": kept} if kept else None


def _is_empty(block: JsonObject) -> bool:
    return block.get("type") == "text" and not as_text(block.get("text"))


def _is_refused(block: JsonObject, foreign: bool, deployment: Deployment) -> bool:
    match block.get("type"):
        case "thinking":
            signed = has_own_signature(block)
            return foreign or not (signed or deployment.reasoning_back)
        case "redacted_thinking":
            return foreign
        case _:
            return False


def _is_foreign(
    blocks: list[JsonObject], request: InferenceRequest, deployment: Deployment
) -> bool:
    """Return whether another model made these calls, as far as that was kept."""
    made = [b.get("id") for b in blocks if b.get("type") == "tool_use"] if request.thoughts else []
    known = (request.thoughts.get(ToolCallId(as_text(call_id))) for call_id in made)
    return any(thought is not None and thought.maker != deployment.model for thought in known)
