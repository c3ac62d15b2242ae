"""A request's walk over the deployments, and what the circuits learn of it."""

from dataclasses import replace

import pytest

from turnout.core.ids import DeploymentId, RequestId, ToolCallId
from turnout.errors import GatewayError
from turnout.gateway.catalog import Catalog
from turnout.gateway.dialog.conversation import Call
from turnout.gateway.exchange import Caller, UpstreamError
from turnout.gateway.measure.circuits import CircuitLimits, Circuits
from turnout.gateway.stages.attempts.fallback import Limits
from turnout.gateway.stages.attempts.tries import Tries, TryGround
from turnout.gateway.stages.trail import Trail
from turnout.testing.clock import FrozenClock
from turnout.testing.exchange import PLAIN_REQUEST, deployment

A, B = DeploymentId("a/m"), DeploymentId("b/m")
CATALOG = Catalog(deployments=(deployment("a/m"), deployment("b/m")))
DEAD = UpstreamError("broke the connection off", status=None)


class Scene:
    """What the requests of one gateway share."""

    def __init__(self) -> None:
        self.clock = FrozenClock()
        self.circuits = Circuits(self.clock, CircuitLimits(in_a_row=2, pause=10.0))
        self.ground = TryGround(CATALOG, self.clock, Limits(), self.circuits)

    def request(self, *order: DeploymentId) -> tuple[Tries, Trail]:
        """Begin a request."""
        request = replace(PLAIN_REQUEST, input_tokens_estimate=7)
        trail = Trail(
            RequestId("req-1"),
            Caller("k"),
            request,
            self.clock.now(),
            self.clock.monotonic(),
            "auto",
        )
        return Tries(trail, order or (A, B), self.ground), trail


async def test_a_failed_attempt_is_noted_and_costs_nothing() -> None:
    """The second choice serves as a stand-in; both attempts are on the trail."""
    tries, trail = Scene().request()
    assert (await tries.next()).id == A
    assert trail.usage.input_tokens == 7
    tries.failed(DEAD)
    assert (trail.serving, trail.usage.input_tokens) == (None, 0)
    assert (await tries.next()).id == B
    assert trail.fallback
    tries.answered([Call(ToolCallId("c1"), "run", "{}")])
    assert [(a.deployment, a.status) for a in trail.attempts] == [(A, None), (B, 200)]
    assert (trail.calls, trail.tools_called) == (("c1",), ("run",))


async def test_all_tries_of_one_request_count_as_one_failure() -> None:
    """One client's retries alone do not open a circuit."""
    scene = Scene()
    tries, _ = scene.request(A)
    for _ in range(2):
        await tries.next()
        tries.failed(UpstreamError("x", status=500))
    with pytest.raises(GatewayError):
        await tries.next()
    assert scene.circuits.admits(A)
    again, _ = scene.request(A)
    await again.next()
    again.failed(UpstreamError("x", status=500))
    assert not scene.circuits.admits(A)


async def test_one_that_fell_ill_since_the_decision_is_passed_over() -> None:
    """The request goes to the next of its order, and its fallback is noted."""
    scene = Scene()
    tries, trail = scene.request()
    for _ in range(2):
        scene.circuits.failed(A, DEAD)
    assert (await tries.next()).id == B
    assert trail.fallback
    assert trail.attempts == []


async def test_where_all_are_left_alone_the_client_hears_when_to_come_back() -> None:
    """Nobody was asked."""
    scene = Scene()
    tries, trail = scene.request(A)
    for _ in range(2):
        scene.circuits.failed(A, DEAD)
    with pytest.raises(GatewayError) as caught:
        await tries.next()
    assert (caught.value.status, caught.value.retry_after) == (503, 1.0)
    assert trail.attempts == []


async def test_one_request_tries_for_all_and_its_first_piece_is_enough() -> None:
    """While it waits for that, the others stay away."""
    scene = Scene()
    for _ in range(2):
        scene.circuits.failed(A, DEAD)
    scene.clock.advance(10)
    trying, _ = scene.request()
    other, _ = scene.request()
    assert (await trying.next()).id == A
    assert (await other.next()).id == B
    trying.first_piece()
    third, _ = scene.request()
    assert (await third.next()).id == A


async def test_a_client_that_goes_away_leaves_the_trial_to_the_next() -> None:
    """It showed nothing of the deployment."""
    scene = Scene()
    for _ in range(2):
        scene.circuits.failed(A, DEAD)
    scene.clock.advance(10)
    trying, trail = scene.request()
    await trying.next()
    trying.abandoned()
    assert trail.attempts[0].error == "the client went away"
    assert (await scene.request()[0].next()).id == A


async def test_a_retry_after_rests_the_deployment_for_others_and_holds_for_oneself() -> None:
    """The request itself waits as long as it was told and asks again."""
    scene = Scene()
    tries, _ = scene.request(A)
    await tries.next()
    tries.failed(UpstreamError("x", status=429, retry_after=2.0))
    assert scene.circuits.ailing()[A].state == "resting"
    assert (await tries.next()).id == A
    assert scene.clock.slept == [2.0]
    assert scene.circuits.ailing() == {}


async def test_a_stream_that_breaks_off_counts_against_the_deployment() -> None:
    """Though it had begun to answer."""
    scene = Scene()
    for _ in range(2):
        tries, trail = scene.request(A)
        await tries.next()
        tries.first_piece()
        tries.broke_off(DEAD)
        assert trail.ttft_ms == 0
    assert not scene.circuits.admits(A)
