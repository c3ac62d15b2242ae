"""Which deployment comes next when one has failed, and what the client hears when none is left."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from turnout.core.ids import DeploymentId
from turnout.core.policies import PinnedFallback
from turnout.core.receipts import Decision
from turnout.errors import GatewayError
from turnout.gateway.catalog import Catalog
from turnout.gateway.exchange import InferenceRequest, UpstreamError
from turnout.gateway.ports import Holder

__all__ = ["Failure", "Limits", "Try", "client_error", "next_try", "try_order"]

_OUR_FAULT = frozenset({401, 402, 403, 404})
"""Statuses by which a provider refuses our key, our account or our name for the model."""


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
    held: Holder | None,
    rule: PinnedFallback,
    catalog: Catalog,
    decide: Callable[[InferenceRequest], Decision],
) -> tuple[DeploymentId, ...]:
    """Return the deployments that may serve a request, first choice first.

    A request that names its model goes elsewhere only as the policy says, and to another model
    only where no tool call is open. `decide` judges the stand-ins.
    """
    if request.model == "auto" or not decision.order:
        return decision.order
    if rule.mode == "none":
        return decision.order[:1]
    order = list(decision.order)
    named = catalog.deployment(DeploymentId(request.model))
    stand_ins = [] if named is None else [str(named.model)]
    if held is None and rule.mode == "model" and rule.model is not None:
        stand_ins.append(rule.model)
    if held is None and rule.mode == "auto":
        stand_ins.append("auto")
    for model in stand_ins:
        order += decide(replace(request, model=model)).order
    return tuple(dict.fromkeys(order))


def next_try(
    order: Sequence[DeploymentId], failures: Sequence[Failure], elapsed: float, limits: Limits
) -> Try | None:
    """Return the next try: one not tried yet, else one worth trying again; None: give up.

    `elapsed`: seconds since the request came.
    """
    if failures and not _helps_elsewhere(failures[-1].error):
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


def client_error(failure: Failure) -> GatewayError | UpstreamError:
    """Return what the client hears of the last failure.

    A complaint about the request is the upstream's own, unmodified; one about our key or
    account is a fault of this gateway (502) and its text stays here.
    """
    error, status = failure.error, failure.error.status
    if status in _OUR_FAULT:
        return GatewayError(
            f"{failure.deployment} refuses this gateway with status {status}.",
            status=502,
            code="provider_refused",
            mend="Check the provider's key, its account, and the deployment's upstream name.",
        )
    shown = _shown_status(error)
    if error.body is not None:
        return UpstreamError(
            str(error), status=shown, retry_after=error.retry_after, body=error.body
        )
    return GatewayError(
        error.sentence(failure.deployment),
        status=shown,
        code="upstream_timeout" if shown == 504 else "upstream_error",
        retry_after=error.retry_after,
    )


def _helps_elsewhere(error: UpstreamError) -> bool:
    return error.retryable or error.status in _OUR_FAULT


def _wait(error: UpstreamError, repeats: int, limits: Limits) -> float:
    if error.retry_after is not None:
        return error.retry_after
    return float(limits.backoff * 2**repeats)


def _shown_status(error: UpstreamError) -> int:
    if error.status is None:
        return 504 if error.timed_out else 502
    if error.status < 500:
        return error.status
    return {503: 503, 504: 504, 529: 503}.get(error.status, 502)
