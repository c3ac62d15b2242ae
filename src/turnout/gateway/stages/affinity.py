"""Which model an open tool call belongs to: its result goes to no other."""

from collections.abc import Sequence

from turnout.core.ids import SessionId, ToolCallId
from turnout.gateway.catalog import Deployment
from turnout.gateway.exchange import Caller, InferenceRequest
from turnout.gateway.ports import AffinityStore, Holder

__all__ = ["find_holder", "remember_calls"]


async def find_holder(
    store: AffinityStore, caller: Caller, request: InferenceRequest
) -> Holder | None:
    """Return who made the calls whose results end the conversation; None where none is open."""
    if not request.open_calls:
        return None
    return await store.holder(_scope(caller, request.session), request.open_calls)


async def remember_calls(
    store: AffinityStore,
    caller: Caller,
    session: SessionId | None,
    calls: Sequence[ToolCallId],
    made_by: Deployment,
) -> None:
    """Note who made these calls."""
    if calls:
        holder = Holder(made_by.model, made_by.id)
        await store.remember(_scope(caller, session), calls, holder)


def _scope(caller: Caller, session: SessionId | None) -> str:
    # Some models number their calls from 0 in every conversation: a session keeps them apart.
    return f"{caller.key}\n{session or ''}"
