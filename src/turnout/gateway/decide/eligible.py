"""Why a deployment may not serve a request."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from turnout.core.ids import ProviderName
from turnout.core.inference import Objective, TaskKind
from turnout.core.policies import Policy
from turnout.gateway.catalog import Deployment, ToolSupport
from turnout.gateway.evidence import Evidence
from turnout.gateway.exchange import InferenceRequest
from turnout.gateway.ports import Holder

__all__ = ["Question", "drop_reason", "mend_of"]

_FEWEST_SAMPLES = 5
"""Tool calls below which a success rate says more about chance than about the deployment."""

_UNSET = "is not set"
_UNPRICED = "price unknown under a spend cap"

_MENDS = (
    (_UNSET, "Export the variable that holds the key."),
    (
        _UNPRICED,
        (
            "State the deployment's `price`, or set `allow_unpriced = true` under [policy] (such "
            "calls are then not counted by the cap), or leave `max_spend_usd` out."
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Question:
    """What is being decided, the same for every deployment."""

    request: InferenceRequest
    policy: Policy
    objective: Objective
    task: TaskKind
    held: Holder | None
    """Who must be kept; None where the request is free or names its model."""
    unset_keys: Mapping[ProviderName, str] = field(default_factory=dict)
    """Variables that are not set, of the providers that cannot be asked without them."""

    @property
    def pinned(self) -> bool:
        """Whether the request names its model."""
        return self.request.model != "auto"


def drop_reason(question: Question, deployment: Deployment, evidence: Evidence) -> str | None:
    """Return the first reason against a deployment; None where it may serve."""
    for rule in _RULES:
        if reason := rule(question, deployment, evidence):
            return reason
    return None


def mend_of(said: str) -> str:
    """Return what would admit deployments that were dropped, from the reasons as they were said."""
    mends = [mend for reason, mend in _MENDS if reason in said]
    return " ".join(mends)


def _asked(question: Question, deployment: Deployment, _: Evidence) -> str | None:
    if question.held is not None and deployment.model != question.held.model:
        return "not the model of the open tool call"
    names = {"auto", deployment.model, deployment.id}
    return None if question.request.model in names else "not asked for"


def _pool(question: Question, deployment: Deployment, _: Evidence) -> str | None:
    pool = question.policy.pool.models
    return "outside the pool" if pool and deployment.model not in pool else None


def _key(question: Question, deployment: Deployment, _: Evidence) -> str | None:
    variable = question.unset_keys.get(deployment.provider)
    return f"{variable} {_UNSET}" if variable else None


def _tools(question: Question, deployment: Deployment, evidence: Evidence) -> str | None:
    if not question.request.tools:
        return None
    support: ToolSupport = deployment.tools if deployment.tools != "unknown" else evidence.tools
    return None if support == "confirmed" else f"tool support {support}"


def _context(question: Question, deployment: Deployment, _: Evidence) -> str | None:
    if deployment.context_window is None:
        return None
    output = question.request.max_tokens
    needed = question.request.input_tokens_estimate + (
        deployment.max_output if output is None else output
    )
    if needed <= deployment.context_window:
        return None
    return f"needs {needed} tokens, its context window has {deployment.context_window}"


def _schema(question: Question, deployment: Deployment, _: Evidence) -> str | None:
    if question.request.wants_json_schema and not deployment.json_schema:
        return "does not enforce a JSON schema"
    return None


def _price(question: Question, deployment: Deployment, _: Evidence) -> str | None:
    policy = question.policy
    if policy.session.max_spend is None or policy.allow_unpriced or deployment.price is not None:
        return None
    return _UNPRICED


def _tool_success(question: Question, _: Deployment, evidence: Evidence) -> str | None:
    rate, least = evidence.tool_success, question.policy.min_tool_success
    if not question.request.tools or question.held is not None or rate is None:
        return None
    if evidence.tool_samples < _FEWEST_SAMPLES or rate >= least:
        return None
    return f"tool success {rate:.2f} is below {least:.2f}"


def _quality_floor(question: Question, deployment: Deployment, _: Evidence) -> str | None:
    if question.objective == "quality" or question.held is not None or question.pinned:
        return None
    stated, least = deployment.quality.get(question.task), question.policy.min_quality
    if stated is None or stated.value >= least:
        return None
    return f"quality {stated.value:.2f} is below {least:.2f}"


_Rule = Callable[[Question, Deployment, Evidence], str | None]

_RULES: tuple[_Rule, ...] = (
    _asked,
    _pool,
    _key,
    _tools,
    _context,
    _schema,
    _price,
    _tool_success,
    _quality_floor,
)
