"""Calls are noted with their model, and with the thought where it is wanted back."""

from dataclasses import replace

from turnout.core.ids import ModelId, SessionId, ToolCallId
from turnout.gateway.dialog.conversation import Call, Reasoning, Text
from turnout.gateway.dialog.events import Reply
from turnout.gateway.dialog.thoughts import Thought
from turnout.gateway.exchange import Caller
from turnout.gateway.stages.affinity import find_holder, made_calls, recall_thoughts, scope_of
from turnout.testing.exchange import PLAIN_REQUEST, deployment
from turnout.testing.stores import MemoryAffinityStore

CALLER = Caller("k")
CALLS = (Call(ToolCallId("a"), "look", "{}"), Call(ToolCallId("b"), "look", "{}"))
REPLY = Reply((Reasoning("hm"), *CALLS), "tool_calls")
PLAIN = deployment("p/m")
THINKS = replace(PLAIN, reasoning_back=True)
BOTH = (ToolCallId("a"), ToolCallId("b"))


async def test_an_open_call_leads_to_its_model_and_its_thought() -> None:
    """Within the session, and not outside it."""
    store = MemoryAffinityStore()
    request = replace(PLAIN_REQUEST, session=SessionId("s"), open_calls=BOTH, past_calls=BOTH)
    made = made_calls(CALLER, request, REPLY, THINKS)
    assert made is not None
    await store.remember(made)
    holder = await find_holder(store, CALLER, request)
    assert holder is not None
    assert (holder.model, holder.deployment) == ("m", "p/m")
    recalled = await recall_thoughts(store, CALLER, request)
    thought = Thought(ModelId("m"), (Reasoning("hm"),))
    assert recalled.thoughts == dict.fromkeys(BOTH, thought)
    elsewhere = replace(request, session=SessionId("t"))
    assert await find_holder(store, CALLER, elsewhere) is None
    assert await recall_thoughts(store, CALLER, elsewhere) is elsewhere


def test_a_thought_that_nobody_wants_back_is_not_kept() -> None:
    """Nor is an answer without calls noted at all."""
    made = made_calls(CALLER, PLAIN_REQUEST, REPLY, PLAIN)
    assert made is not None
    assert (made.calls, made.reasoning) == (BOTH, "")
    assert made_calls(CALLER, PLAIN_REQUEST, Reply((Text("Hi"),), "stop"), THINKS) is None


async def test_without_past_calls_the_store_is_not_asked() -> None:
    """It is on the way of every request."""
    store = MemoryAffinityStore()
    assert await find_holder(store, CALLER, PLAIN_REQUEST) is None
    assert await recall_thoughts(store, CALLER, PLAIN_REQUEST) is PLAIN_REQUEST


def test_callers_and_sessions_are_kept_apart() -> None:
    """Some models number their calls from 0."""
    scopes = {
        scope_of(Caller(key), None if session is None else SessionId(session))
        for key in ("k", "l")
        for session in (None, "s", "t")
    }
    assert len(scopes) == 6
