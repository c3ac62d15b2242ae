"""Which deployment comes next when one has failed, and what the client hears when none is left."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from turnout.core.ids import DeploymentId
from turnout.core.policies import PinnedFallback
from turnout.core.receipts import Decision
from turnout.errors import GatewayError
from turnout.gateway.catalog import Catalog
from turnout.gateway.dialog.conversation import Shape
from turnout.gateway.evidence import Sight
from turnout.gateway.exchange import InferenceRequest, UpstreamError
from turnout.gateway.measure.unavailable import ENVIRONMENT_PROVIDER
from turnout.gateway.stages.attempts.refusals import is_refusal

__all__ = ["Failure", "Limits", "Try", "client_error", "next_try", "try_order"]

_OF_ENVIRONMENT = "Check LLM_API_KEY, and that LLM_BASE_URL and LLM_MODEL are meant."
_OUR_FAULT = frozenset({401, 402, 403, 404})
"""Statuses by which a provider refuses our key, our account or our name for the model."""

_OVERLOADED = 529
"""A status that one shape alone knows."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How hard the gateway tries before it gives up."""

    attempts: int = 4
    """Tries of one request, over all deployments."""
    tries_each: int = 2
    """Tries at one deployment."""
    backoff: float = 0.5
    """Seconds before a deployment is tried again, where it names no time itself."""
    longest_wait: float = 10.0
    """Seconds of Retry-After up to which waiting is better than failing."""
    patience: float = 60.0
    """Seconds after which no deployment is tried a second time."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A try that failed before the client saw anything."""

    deployment: DeploymentId
    error: UpstreamError


@dataclass(frozen=True, slots=True)
class Try:
    """What to do next."""

    deployment: DeploymentId
    wait: float
    """Seconds to wait first."""


def try_order(
    request: InferenceRequest,
    decision: Decision,
    sight: Sight,
    rule: PinnedFallback,
    catalog: Catalog,
    decide: Callable[[InferenceRequest], Decision],
) -> tuple[DeploymentId, ...]:
    """Return the deployments that may serve a request, first choice first.

    A request that names its model goes elsewhere only as the policy says, and to another model
    only where no tool call is open. `decide` judges the stand-ins. They also stand in for a model
    of which all deployments are left alone for now, but not for one that may not serve at all.
    """
    if request.model == "auto":
        return decision.order
    if not decision.order and not _is_ailing(request, decision, sight, catalog):
        return ()
    if rule.mode == "none":
        return decision.order[:1]
    order = list(decision.order)
    named = catalog.deployment(DeploymentId(request.model))
    stand_ins = [] if named is None else [str(named.model)]
    if sight.held is None and rule.mode == "model" and rule.model is not None:
        stand_ins.append(rule.model)
    if sight.held is None and rule.mode == "auto":
        stand_ins.append("auto")
    for model in stand_ins:
        order += decide(replace(request, model=model)).order
    return tuple(dict.fromkeys(order))


def _is_ailing(
    request: InferenceRequest, decision: Decision, sight: Sight, catalog: Catalog
) -> bool:
    """Return whether health alone keeps a deployment of the named model from serving."""
    for candidate in decision.candidates:
        ailment = sight.ailing.get(candidate.deployment)
        named = catalog.deployment(candidate.deployment)
        if ailment is None or named is None or request.model not in (named.model, named.id):
            continue
        if (candidate.dropped or "").startswith(ailment.why):
            return True
    return False


def next_try(
    order: Sequence[DeploymentId],
    failures: Sequence[Failure],
    elapsed: float,
    limits: Limits,
    *,
    reroute_refusals: bool = False,
) -> Try | None:
    """Return the next try: one not tried yet, else one worth trying again; None: give up.

    `elapsed`: seconds since the request came. A prompt that a content filter refused goes
    elsewhere only where `reroute_refusals` says so.
    """
    if failures and not _helps_elsewhere(failures[-1].error, reroute_refusals):
        return None
    if len(failures) >= limits.attempts:
        return None
    tried = {failure.deployment: failure for failure in failures}
    fresh = next((d for d in order if d not in tried), None)
    if fresh is not None:
        return Try(fresh, 0.0)
    again = [
        Try(failure.deployment, _wait(failure.error, len(failures) - len(tried), limits))
        for failure in tried.values()
        if failure.error.retryable
        and sum(f.deployment == failure.deployment for f in failures) < limits.tries_each
    ]
    soonest = min(again, key=lambda attempt: attempt.wait, default=None)
    if soonest is None or soonest.wait > limits.longest_wait:
        return None
    return soonest if elapsed + soonest.wait <= limits.patience else None


def client_error(failure: Failure, heard: Shape = "chat") -> GatewayError | UpstreamError:
    """Return what a client of the shape `heard` hears of the last failure.

    A complaint about the request is the upstream's own, unmodified; one about our key or
    account is a fault of this gateway (502) and its text stays here.
    """
    error, status = failure.error, failure.error.status
    if status in _OUR_FAULT and not is_refusal(error):
        return GatewayError(
            f"{failure.deployment} refuses this gateway with status {status}.",
            status=502,
            code="provider_refused",
            mend=_OF_ENVIRONMENT
            if failure.deployment.startswith(f"{ENVIRONMENT_PROVIDER}/")
            else "Check the provider's key, its account, and the deployment's upstream name.",
        )
    shown = _shown_status(error, heard)
    if error.body is not None:
        return UpstreamError(
            str(error),
            status=shown,
            retry_after=error.retry_after,
            body=error.body,
            headers=error.headers,
            shape=error.shape,
            said=error.said,
        )
    return GatewayError(
        error.sentence(failure.deployment),
        status=shown,
        code={429: "rate_limit_exceeded", 504: "upstream_timeout"}.get(shown, "upstream_error"),
        retry_after=error.retry_after,
    )


def _helps_elsewhere(error: UpstreamError, reroute_refusals: bool) -> bool:
    if is_refusal(error):
        return reroute_refusals
    return error.retryable or error.status in _OUR_FAULT


def _wait(error: UpstreamError, repeats: int, limits: Limits) -> float:
    if error.retry_after is not None:
        return error.retry_after
    return float(limits.backoff * 2**repeats)


def _shown_status(error: UpstreamError, heard: Shape) -> int:
    if error.status is None:
        return 504 if error.timed_out else 502
    if error.status == _OVERLOADED and error.shape == heard == "messages":
        return _OVERLOADED
    if error.status < 500:
        return error.status
    return {503: 503, 504: 504, _OVERLOADED: 503}.get(error.status, 502)
