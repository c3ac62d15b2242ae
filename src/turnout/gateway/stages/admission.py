"""Whether a request may be served at all: its model's name, and what it is charged to."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from difflib import get_close_matches

from turnout.core.govern.closing import Charge
from turnout.core.money import Micros
from turnout.core.policies import Policy, Reservation, SessionCaps, SessionTotals
from turnout.errors import GatewayError
from turnout.gateway.catalog import Catalog, Deployment
from turnout.gateway.exchange import Caller, InferenceRequest

__all__ = [
    "charges_for",
    "check_names",
    "refusal",
    "spend_is_capped",
    "worst_case",
]

_NO_CAPS = SessionCaps()
_MOST = Micros(10**15)
"""A billion dollars: limits on tokens have no limit themselves, columns of a database do."""
_MINUTE = 60
_MTOK = 1_000_000
"""Tokens that a price is for."""


def check_names(request: InferenceRequest, catalog: Catalog) -> None:
    """Refuse (404) a model that does not exist, naming those that come near."""
    model = request.model
    if model == "auto" or any(model in (d.model, d.id) for d in catalog.deployments):
        return
    names = {"auto", *(d.model for d in catalog.deployments), *(d.id for d in catalog.deployments)}
    near = get_close_matches(model, sorted(names), n=3, cutoff=0.4)
    raise GatewayError(
        f"The model `{model}` does not exist here.",
        status=404,
        code="model_not_found",
        mend=f"Near names: {', '.join(near)}." if near else "GET /v1/models lists the names.",
        param="model",
    )


def charges_for(
    caller: Caller, request: InferenceRequest, policy: Policy, now: datetime
) -> tuple[Charge, ...]:
    """Return all that a request counts on, `now` being in UTC; empty where nothing is limited.

    A request without a session is a session of its own, on which no other ever counts: it is
    refused here where the caps admit no request at all.
    """
    charges: tuple[Charge, ...] = ()
    caps, limits = policy.session, caller.limits
    if caps != _NO_CAPS:
        if request.session is not None:
            charges = (Charge("session", caller.key, request.session, caps),)
        else:
            _check_alone(caps)
    if limits.requests_per_minute is not None:
        minute = now.isoformat(timespec="minutes")[: len("2026-01-01T00:00")]
        caps = SessionCaps(max_requests=limits.requests_per_minute)
        charges = (*charges, Charge("key_minute", caller.key, minute, caps))
    if limits.spend_per_day is not None:
        caps = SessionCaps(max_spend=limits.spend_per_day)
        charges = (*charges, Charge("key_day", caller.key, now.date().isoformat(), caps))
    return charges


def spend_is_capped(charges: Iterable[Charge]) -> bool:
    """Return whether what a request costs must be known."""
    return any(charge.caps.max_spend is not None for charge in charges)


def worst_case(request: InferenceRequest, reachable: Iterable[Deployment]) -> Micros:
    """Return the most that the request may cost; a deployment without a price counts as free."""
    answers = request.body.get("n")
    copies = answers if isinstance(answers, int) and answers > 0 else 1
    tokens = request.input_tokens_estimate
    most = 0
    for deployment in reachable:
        price = deployment.price
        if price is not None:
            if price.tiers:
                # The tokens are an estimate: a tier that the true count may reach is reached.
                price = price.at(tokens + tokens // 4)
            dearest = max(price.input, price.cache_read or 0, price.cache_write or 0)
            output = copies * (request.max_tokens or deployment.max_output)
            most = max(most, tokens * dearest + output * price.output)
    return min(Micros(-(-most // _MTOK)), _MOST)


def refusal(place: Reservation, charges: Sequence[Charge], now: datetime) -> GatewayError:
    """Return the error for a request that one of its charges has refused."""
    (refused,) = (charge for charge in charges if charge.kind == place.refused_by)
    if refused.kind == "key_minute":
        return GatewayError(
            f"The key has made its {refused.caps.max_requests} requests of this minute.",
            status=429,
            code="rate_limit_exceeded",
            mend="Wait for the next minute, or raise `requests_per_minute` of the key.",
            retry_after=_MINUTE - now.second,
        )
    if refused.kind == "key_day":
        return GatewayError(
            "The key has spent, or reserved for calls under way, all that it may today.",
            status=402,
            code="key_spend_cap",
            mend="Wait for the next day (UTC), or raise `spend_per_day` of the key.",
        )
    return _session_refusal(refused.caps, place.exceeded)


def _check_alone(caps: SessionCaps) -> None:
    exceeded = caps.exceeded_by(SessionTotals(0, Micros(0)))
    if exceeded:
        raise _session_refusal(caps, exceeded)


def _session_refusal(caps: SessionCaps, exceeded: str) -> GatewayError:
    if exceeded == "requests":
        return GatewayError(
            f"The session has made its {caps.max_requests} requests.",
            status=429,
            code="session_request_cap",
            mend="Start a new session, or raise `max_requests` in the policy.",
        )
    return GatewayError(
        "The session has spent, or reserved for calls under way, all that it may.",
        status=402,
        code="session_spend_cap",
        mend="Start a new session, or raise `max_spend_usd` in the policy.",
    )
