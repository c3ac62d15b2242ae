"""Why a deployment may not serve a request."""

from typing import Final, NamedTuple

from turnout.core.ids import ModelId
from turnout.core.inference import Objective, TaskKind, TaskSource
from turnout.core.money import Micros
from turnout.core.policies import Policy
from turnout.core.usage import Usage
from turnout.gateway.decide.classify import classify
from turnout.gateway.decide.table import Row
from turnout.gateway.evidence import Sight
from turnout.gateway.exchange import InferenceRequest
from turnout.gateway.ports import Holder

__all__ = [
    "PRICE_MEND",
    "Question",
    "drop_reason",
    "lacks_price",
    "mend_of",
    "over_budget",
    "question_of",
]

_EXPECTED_OUTPUT = 500
"""Output tokens of a typical call; a smaller limit of the request replaces it."""

_UNSET = "is not set"
_UNPRICED = "price unknown under a spend cap"

PRICE_MEND: Final = (
    "State the deployment's `price` under [[deployments]] in turnout.toml, or set "
    "`allow_unpriced = true` under [policy] (such calls are then not counted by the cap), or leave "
    "the cap out: `max_spend_usd`, or `--spend-per-day` of the key."
)

_MENDS = (
    (_UNSET, "Export the variable that holds the key."),
    (_UNPRICED, PRICE_MEND),
    ("tool success rests on", "Measure it: `turnout models probe`."),
    ("its tool success is unknown", "Measure it: `turnout models probe`."),
    ("days old, the policy takes", "Measure again: `turnout models probe`."),
)


class Question(NamedTuple):
    """What is being decided, the same for every deployment; made by `question_of`."""

    request: InferenceRequest
    policy: Policy
    sight: Sight
    objective: Objective
    task: TaskKind
    source: TaskSource
    held: Holder | None
    """Who must be kept; None where the request is free or names its model."""
    pinned: bool
    """Whether the request names its model."""
    first: str | None
    """Id of a model or deployment that a rule of the policy tries first."""
    needs_price: bool
    floor: float
    """Quality that a deployment must not be known to miss."""
    expected: Usage
    """What the request is expected to use."""


def question_of(request: InferenceRequest, policy: Policy, sight: Sight) -> Question:
    """Return the question that a request raises under a policy."""
    task, source = classify(request)
    objective = request.ask.optimize or policy.objective
    pinned = request.model != "auto"
    held = None if pinned else sight.held
    free = held is None and not pinned
    capped = policy.session.max_spend is not None or sight.spend_capped
    limit = request.max_tokens
    output = _EXPECTED_OUTPUT if limit is None else min(limit, _EXPECTED_OUTPUT)
    return Question(
        request=request,
        policy=policy,
        sight=sight,
        objective=objective,
        task=task,
        source=source,
        held=held,
        pinned=pinned,
        first=_rule(policy, task) if free and policy.task_rules else None,
        needs_price=capped and not policy.allow_unpriced,
        floor=policy.min_quality if free and objective != "quality" else 0.0,
        expected=Usage(request.input_tokens_estimate, output),
    )


def _rule(policy: Policy, task: TaskKind) -> ModelId | None:
    return next((rule.model for rule in policy.task_rules if rule.task == task), None)


def drop_reason(q: Question, row: Row) -> str | None:
    """Return the first reason against a deployment; None where it may serve.

    What it is expected to cost is not looked at.
    """
    return _by_policy(q, row) or _by_request(q, row) or _by_evidence(q, row)


def _by_policy(q: Question, row: Row) -> str | None:
    if q.pinned:
        if q.request.model not in (row.model, row.id):
            return "not asked for"
    elif q.held is not None and q.held.model != row.model:
        return "not the model of the open tool call"
    if row.outside is not None:
        return row.outside
    return _key(q, row)


def _key(q: Question, row: Row) -> str | None:
    variable = row.unset_key
    if q.policy.provider_keys and any(name == row.provider for name, _ in q.policy.provider_keys):
        variable = q.sight.unset_keys.get(row.provider, "")
    return f"{variable} {_UNSET}" if variable else None


def _by_request(q: Question, row: Row) -> str | None:
    request = q.request
    if row.tools is not None and request.tools:
        return row.tools
    if row.window is not None:
        output = row.max_output if request.max_tokens is None else request.max_tokens
        needed = request.input_tokens_estimate + output
        if needed > row.window:
            return f"needs {needed} tokens, its context window has {row.window}"
    if request.modalities and not request.modalities <= row.modalities:
        missing = ", ".join(sorted(request.modalities - row.modalities))
        return f"is not known to take {missing} input"
    if request.wants_json_schema and not row.json_schema:
        return "does not enforce a JSON schema"
    return _UNPRICED if q.needs_price and row.price is None else None


def _by_evidence(q: Question, row: Row) -> str | None:
    if q.held is None:
        if row.below is not None:
            return row.below
        if row.tool_bar is not None and q.request.tools:
            return row.tool_bar
        if q.floor and (known := row.quality.get(q.task)) and known.value < q.floor:
            return f"quality {known.value:.2f} is below {q.floor:.2f}"
    if q.sight.ailing and (ailment := q.sight.ailing.get(row.id)) and ailment.state != "lost":
        return f"{ailment.why}; left alone for {ailment.seconds:.0f} s more"
    return None


def over_budget(cost: Micros | None, q: Question) -> str | None:
    """Return why a deployment that may serve is too dear for what is left to spend."""
    if q.sight.budget is None or cost is None or cost <= q.sight.budget:
        return None
    return f"expected to cost {cost} µUSD, {max(0, q.sight.budget)} are left to spend"


def lacks_price(dropped: str | None) -> bool:
    """Return whether a price alone would have let a dropped deployment serve."""
    return dropped == _UNPRICED


def mend_of(said: str) -> str:
    """Return what would admit deployments that were dropped, from the reasons as they were said."""
    mends = [mend for reason, mend in _MENDS if reason in said]
    return " ".join(dict.fromkeys(mends))
