"""Whether a request may be served at all: its tools, its model's name, its session's caps."""

from collections.abc import Iterable
from contextlib import suppress
from difflib import get_close_matches

from turnout.core.ids import RequestId, SessionId
from turnout.core.money import Micros, cost_micros
from turnout.core.policies import Policy, SessionCaps
from turnout.core.usage import Usage
from turnout.errors import GatewayError, NotFoundError
from turnout.gateway.catalog import Catalog, Deployment
from turnout.gateway.exchange import Caller, InferenceRequest
from turnout.gateway.ports import SessionLedger
from turnout.gateway.tool_rules import ToolJudgement

__all__ = ["check_names", "check_tools", "release", "reserve", "worst_case"]

_MOST = Micros(10**15)
"""A billion dollars: limits on tokens have no limit themselves, columns of a database do."""


def check_tools(judgement: ToolJudgement) -> None:
    """Refuse (403) a request that declares a tool which the policy does not allow."""
    if judgement.refused is not None:
        raise GatewayError(
            f"The policy does not allow the tool `{judgement.refused}`.",
            status=403,
            code="tool_not_allowed",
            mend="Leave it out of the request, or add it to the allow-list of the policy.",
            param="tools",
        )


def check_names(request: InferenceRequest, policy: Policy, catalog: Catalog) -> None:
    """Refuse (404) a model or a policy that does not exist, naming those that come near."""
    names = {"auto", *(d.model for d in catalog.deployments), *(d.id for d in catalog.deployments)}
    if request.model not in names:
        near = get_close_matches(request.model, sorted(names), n=3, cutoff=0.4)
        raise GatewayError(
            f"The model `{request.model}` does not exist here.",
            status=404,
            code="model_not_found",
            mend=f"Near names: {', '.join(near)}." if near else "GET /v1/models lists the names.",
            param="model",
        )
    if request.ask.policy not in {None, policy.name}:
        raise GatewayError(
            f"The policy `{request.ask.policy}` does not exist here.",
            status=404,
            code="policy_not_found",
            mend=f"The policy in force is `{policy.name}`.",
            param="routing.policy",
        )


def worst_case(request: InferenceRequest, reachable: Iterable[Deployment]) -> Micros:
    """Return the most that the request may cost; a deployment without a price counts as free."""
    answers = request.body.get("n")
    copies = answers if isinstance(answers, int) and answers > 0 else 1
    costs = [
        cost_micros(
            Usage(
                input_tokens=request.input_tokens_estimate,
                output_tokens=copies * (request.max_tokens or deployment.max_output),
            ),
            deployment.price,
        )
        for deployment in reachable
        if deployment.price is not None
    ]
    return min(max(costs, default=Micros(0)), _MOST)


async def reserve(
    ledger: SessionLedger,
    caller: Caller,
    session: SessionId,
    request_id: RequestId,
    worst: Micros,
    caps: SessionCaps,
) -> None:
    """Count a request in its session and reserve its worst case.

    `GatewayError`: 429 over the cap on requests, 402 over the one on spend.
    """
    place = await ledger.reserve(caller.key, session, request_id, worst, caps)
    if place.granted:
        return
    if place.exceeded == "requests":
        raise GatewayError(
            f"The session has made its {caps.max_requests} requests.",
            status=429,
            code="session_request_cap",
            mend="Start a new session, or raise `max_requests` in the policy.",
        )
    raise GatewayError(
        "The session has spent, or reserved for calls under way, all that it may.",
        status=402,
        code="session_spend_cap",
        mend="Start a new session, or raise `max_spend_usd` in the policy.",
    )


async def release(ledger: SessionLedger, request_id: RequestId, actual: Micros) -> None:
    """Replace a reservation by what the request cost.

    A client that went away while its place was being reserved may have none.
    """
    with suppress(NotFoundError):
        await ledger.settle(request_id, actual)
