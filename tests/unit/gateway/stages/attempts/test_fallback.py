"""Who is asked next, and what the client hears when nobody is left."""

from dataclasses import replace

import pytest

from turnout.core.ids import DeploymentId, ModelId
from turnout.core.policies import PinnedFallback, Policy, PoolRule
from turnout.core.receipts import Decision
from turnout.errors import GatewayError
from turnout.gateway.catalog import Catalog
from turnout.gateway.decide import decide
from turnout.gateway.evidence import Ailment, Sight
from turnout.gateway.exchange import InferenceRequest, UpstreamError, UpstreamTimeoutError
from turnout.gateway.ports import Holder
from turnout.gateway.stages.attempts.fallback import (
    Failure,
    Limits,
    Try,
    client_error,
    next_try,
    try_order,
)
from turnout.testing.exchange import PLAIN_REQUEST, deployment

A, B = DeploymentId("a/m"), DeploymentId("b/m")
CATALOG = Catalog(deployments=tuple(map(deployment, ("a/m", "b/m", "a/n", "a/o"))))
HELD = Holder(ModelId("m"), A)


def _failed(where: DeploymentId, status: int | None, retry_after: float | None = None) -> Failure:
    return Failure(where, UpstreamError("x", status=status, retry_after=retry_after))


def _order(
    model: str,
    rule: PinnedFallback,
    held: Holder | None = None,
    policy: Policy | None = None,
    **ills: Ailment,
) -> tuple[str, ...]:
    sight = Sight(held=held, ailing={DeploymentId(f"{k}/m"): ill for k, ill in ills.items()})

    def judged(request: InferenceRequest) -> Decision:
        return decide(request, policy or Policy(), CATALOG, sight)

    request = replace(PLAIN_REQUEST, model=model)
    return try_order(request, judged(request), sight, rule, CATALOG, judged)


def test_a_failure_leads_to_the_next_in_order() -> None:
    """Without a wait: the other deployment is not the one that failed."""
    assert next_try([A, B], [], 0.0, Limits()) == Try(A, 0.0)
    assert next_try([A, B], [_failed(A, 503)], 0.0, Limits()) == Try(B, 0.0)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_complaint_about_the_request_ends_the_tries(status: int) -> None:
    """Another model would be asked to do what one has refused."""
    assert next_try([A, B], [_failed(A, status)], 0.0, Limits()) is None


@pytest.mark.parametrize("status", [401, 402, 403, 404])
def test_a_complaint_about_us_is_not_repeated_but_goes_elsewhere(status: int) -> None:
    """The next provider has another key."""
    assert next_try([A, B], [_failed(A, status)], 0.0, Limits()) == Try(B, 0.0)
    assert next_try([A], [_failed(A, status)], 0.0, Limits()) is None


def test_the_only_deployment_is_tried_again_after_its_own_retry_after() -> None:
    """The provider knows best when it is free."""
    assert next_try([A], [_failed(A, 429, 2.0)], 0.0, Limits()) == Try(A, 2.0)
    assert next_try([A], [_failed(A, None)], 0.0, Limits()) == Try(A, 0.5)


def test_a_retry_after_beyond_patience_goes_to_the_client() -> None:
    """Waiting longer than the client would is no service."""
    assert next_try([A], [_failed(A, 429, 11.0)], 0.0, Limits()) is None
    assert next_try([A], [_failed(A, 503)], 59.9, Limits()) is None


def test_tries_are_bounded_each_and_together() -> None:
    """No request asks for ever."""
    assert next_try([A], [_failed(A, 500), _failed(A, 500)], 0.0, Limits()) is None
    many = [DeploymentId(f"p{i}/m") for i in range(9)]
    failures = [_failed(d, 500) for d in many[:4]]
    assert next_try(many, failures, 0.0, Limits(attempts=4)) is None


def test_the_one_that_is_free_soonest_is_tried_again() -> None:
    """Both have failed once."""
    failures = [_failed(A, 429, 5.0), _failed(B, 429, 1.0)]
    assert next_try([A, B], failures, 0.0, Limits()) == Try(B, 1.0)


@pytest.mark.parametrize(
    ("rule", "order"),
    [
        (PinnedFallback("none"), ("a/m",)),
        (PinnedFallback("same_model"), ("a/m", "b/m")),
        (PinnedFallback("model", ModelId("o")), ("a/m", "b/m", "a/o")),
        (PinnedFallback("auto"), ("a/m", "b/m", "a/n", "a/o")),
    ],
)
def test_a_named_model_falls_back_as_the_policy_says(
    rule: PinnedFallback, order: tuple[str, ...]
) -> None:
    """none, the same model elsewhere, a stand-in, or any."""
    assert _order("m", rule) == order


def test_a_named_deployment_falls_back_to_its_model_elsewhere() -> None:
    """`b/m` names where to begin."""
    assert _order("b/m", PinnedFallback("same_model")) == ("b/m", "a/m")
    assert _order("b/m", PinnedFallback("none")) == ("b/m",)


def test_a_named_model_that_is_left_alone_falls_back_like_one_that_fails() -> None:
    """Its circuit is open: the policy's stand-ins serve, and only they."""
    ill = Ailment("open", 9.0, "8 requests failed in a row")
    assert _order("a/m", PinnedFallback("same_model"), a=ill) == ("b/m",)
    assert _order("m", PinnedFallback("same_model"), a=ill, b=ill) == ()
    assert _order("m", PinnedFallback("model", ModelId("o")), a=ill, b=ill) == ("a/o",)
    assert _order("m", PinnedFallback("auto"), a=ill, b=ill) == ("a/n", "a/o")
    assert _order("m", PinnedFallback("none"), a=ill, b=ill) == ()
    assert _order("m", PinnedFallback("auto"), HELD, a=ill, b=ill) == ()


def test_a_named_model_that_the_policy_does_not_admit_has_no_stand_in() -> None:
    """A fallback is for failures; it is no way around the pool."""
    policy = Policy(pool=PoolRule(models=("n", "o")))
    ill = Ailment("open", 9.0, "8 requests failed in a row")
    assert _order("m", PinnedFallback("auto"), policy=policy) == ()
    assert _order("m", PinnedFallback("auto"), policy=policy, a=ill, b=ill) == ()


def test_an_open_call_never_leaves_its_model() -> None:
    """Neither by rank nor by any fallback rule."""
    assert _order("auto", PinnedFallback("auto"), HELD) == ("a/m", "b/m")
    assert _order("m", PinnedFallback("auto"), HELD) == ("a/m", "b/m")


@pytest.mark.cases
@pytest.mark.parametrize("status", [400, 403])
def test_a_content_filters_refusal_goes_elsewhere_only_by_policy(status: int) -> None:
    """What one provider refuses to read is not shopped around."""
    body = b'{"error": {"code": "content_filter", "message": "no"}}'
    refused = Failure(A, UpstreamError("x", status=status, body=body))
    assert next_try([A, B], [refused], 0.0, Limits()) is None
    assert next_try([A, B], [refused], 0.0, Limits(), reroute_refusals=True) == Try(B, 0.0)
    assert next_try([A], [refused], 0.0, Limits(), reroute_refusals=True) is None
    error = client_error(refused)
    assert isinstance(error, UpstreamError)
    assert (error.status, error.body) == (status, body)


def test_the_upstreams_own_complaint_reaches_the_client_unmodified() -> None:
    """Status, body and Retry-After."""
    failure = Failure(A, UpstreamError("x", status=429, retry_after=7.0, body=b'{"error":{}}'))
    error = client_error(failure)
    assert isinstance(error, UpstreamError)
    assert (error.status, error.body, error.retry_after) == (429, b'{"error":{}}', 7.0)


@pytest.mark.parametrize("status", [401, 402, 403, 404])
def test_a_complaint_about_our_key_stays_here(status: int) -> None:
    """The client's key is fine, and the provider's text may hold ours."""
    error = client_error(Failure(A, UpstreamError("sk-secret", status=status, body=b"sk-secret")))
    assert isinstance(error, GatewayError)
    assert (error.status, error.code) == (502, "provider_refused")
    assert "sk-secret" not in str(error)
    of_environment = client_error(Failure(DeploymentId("env/m"), UpstreamError("x", status=status)))
    assert "LLM_API_KEY" in str(of_environment)


@pytest.mark.parametrize(
    ("status", "timed_out", "shown"),
    [
        (None, False, 502),
        (None, True, 504),
        (500, False, 502),
        (503, False, 503),
        (504, False, 504),
        (529, False, 503),
        (418, False, 418),
    ],
)
def test_each_failure_has_its_status(status: int | None, timed_out: bool, shown: int) -> None:
    """The gateway's own status says on which side the fault is."""
    error = (UpstreamTimeoutError if timed_out else UpstreamError)("x", status=status)
    assert client_error(Failure(A, error)).status == shown


def test_a_dead_deployment_is_named_once() -> None:
    """One clean sentence."""
    lost = UpstreamError("could not be connected to: Connection refused", status=None)
    error = client_error(Failure(A, lost))
    assert error.message == f"{A} could not be connected to: Connection refused."
