"""What past calls of a conversation are bound to: the model that made them, and its thoughts."""

from dataclasses import replace

from turnout.core.govern.closing import MadeCalls
from turnout.core.ids import SessionId
from turnout.core.tools import Holder
from turnout.gateway.catalog import Deployment
from turnout.gateway.dialog.conversation import Reasoning
from turnout.gateway.dialog.events import Reply
from turnout.gateway.dialog.thoughts import Thought, decode_thought, encode_thought
from turnout.gateway.exchange import Caller, InferenceRequest
from turnout.gateway.ports import AffinityStore

__all__ = ["find_holder", "made_calls", "recall_thoughts", "scope_of"]


async def find_holder(
    store: AffinityStore, caller: Caller, request: InferenceRequest
) -> Holder | None:
    """Return who made the calls whose results end the conversation; None where none is open."""
    if not request.open_calls:
        return None
    return await store.holder(scope_of(caller, request.session), request.open_calls)


async def recall_thoughts(
    store: AffinityStore, caller: Caller, request: InferenceRequest
) -> InferenceRequest:
    """Return the request with what was thought before its past calls, where that was kept."""
    if not request.past_calls:
        return request
    kept = await store.reasoning(scope_of(caller, request.session), request.past_calls)
    if not kept:
        return request
    return replace(request, thoughts={call: decode_thought(text) for call, text in kept.items()})


def made_calls(
    caller: Caller, request: InferenceRequest, reply: Reply, made_by: Deployment
) -> MadeCalls | None:
    """Return the note of who made the calls of an answer; None where it made none.

    What was thought before them is part of it where the deployment wants that back.
    """
    calls = tuple(call.id for call in reply.calls)
    if not calls:
        return None
    thoughts = tuple(part for part in reply.parts if isinstance(part, Reasoning))
    kept = ""
    if made_by.reasoning_back and thoughts:
        kept = encode_thought(Thought(made_by.model, thoughts))
    scope = scope_of(caller, request.session)
    return MadeCalls(scope, calls, Holder(made_by.model, made_by.id), kept)


def scope_of(caller: Caller, session: SessionId | None) -> str:
    """Return what keeps the calls of different callers and conversations apart.

    Some models number their calls from 0 in every conversation: a session tells them apart.
    """
    return f"{caller.key}\n{session or ''}"
