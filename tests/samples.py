"""Values for tests: one of each kind by hand, and strategies that make any of them."""

import types
import typing
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any, Literal, get_args, get_origin

from hypothesis import strategies as st

from turnout.core.events import Event, RunEnded, RunStarted, VerdictGiven
from turnout.core.ids import DeploymentId, ModelId, ProviderName, RequestId, SessionId
from turnout.core.inference import RoutingReport
from turnout.core.money import Micros
from turnout.core.receipts import Attempt, Candidate, Decision, Receipt
from turnout.core.runs import Verdict
from turnout.core.tasks import Task
from turnout.core.usage import Usage

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
STRANGE = "NUL \0, surrogate \udcff, backslash \\udcff \\\\, accent é, rail 🛤"
STARTED = RunStarted(Task(STRANGE, "/repo"), "c" * 40, "loop")
JUDGED = VerdictGiven(
    Verdict("resolved", failed_before=True, passes_after=True, tests_untouched=True)
)
ENDED = RunEnded("answered", "The model answered.")

_LEAVES = {
    # Two surrogates that make a pair cannot be told from the character that they spell.
    str: st.text(
        st.one_of(st.characters(), st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF))
    ),
    bytes: st.binary(),
    int: st.integers(-(2**62), 2**62),
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
    type(None): st.none(),
    datetime: st.datetimes(timezones=st.just(UTC)),
}


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for an annotation, as the core's dataclasses use them."""
    if isinstance(kind, typing.NewType):
        return values(kind.__supertype__)
    if kind in _LEAVES:
        return _LEAVES[kind]
    if is_dataclass(kind) and isinstance(kind, type):
        hints = typing.get_type_hints(kind)
        return st.builds(kind, **{field.name: values(hints[field.name]) for field in fields(kind)})
    if get_origin(kind) is Literal:
        return st.sampled_from(get_args(kind))
    if get_origin(kind) in {typing.Union, types.UnionType}:
        return st.one_of([values(one) for one in get_args(kind)])
    assert get_origin(kind) is tuple
    if get_args(kind)[-1] is not ...:
        return st.tuples(*map(values, get_args(kind)))
    return st.lists(values(get_args(kind)[0]), max_size=3).map(tuple)


def any_event() -> st.SearchStrategy[Event]:
    """Return a strategy for every kind of event."""
    return values(Event)


def receipt(name: str = "req-1", *, session: str | None = "s", key: str = "k") -> Receipt:
    """Return a receipt with every part filled in."""
    deployment = DeploymentId("acme/rail-1")
    decision = Decision(
        objective="cost",
        task="coding",
        task_source="request",
        order=(deployment,),
        candidates=(Candidate(deployment, 0.5, None), Candidate(deployment, None, "no tools")),
        sticky=False,
        policy_revision=3,
        reason="The cheapest of one.",
    )
    routing = RoutingReport(
        model=ModelId("rail-1"),
        provider=ProviderName("acme"),
        deployment=deployment,
        objective="cost",
        task="coding",
        task_source="request",
        session=SessionId(session) if session else None,
        sticky=False,
        fallback=True,
        policy_revision=3,
        reason="The cheapest of one.",
        cost_micros=Micros(1_250),
    )
    return Receipt(
        request_id=RequestId(name),
        at=NOON,
        session=routing.session,
        key=key,
        status="ok",
        http_status=200,
        error_code=None,
        asked_model="auto",
        call_kind="act",
        decision=decision,
        routing=routing,
        attempts=(Attempt(deployment, 503, "overloaded", 12), Attempt(deployment, 200, None, 90)),
        usage=Usage(1_000, 50, 800),
        cost_micros=Micros(1_250),
        latency_ms=102,
        ttft_ms=40,
        tools_declared=("read_file",),
        tools_called=("read_file",),
        tools_outside=("run_command",),
        repairs=("arguments: trailing comma removed",),
    )
