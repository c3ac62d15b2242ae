"""One request's walk over the deployments, noted on its trail."""

from collections.abc import Sequence
from dataclasses import dataclass

from turnout.core.clock import Clock
from turnout.core.ids import DeploymentId
from turnout.core.receipts import Attempt
from turnout.core.usage import Usage
from turnout.errors import GatewayError
from turnout.gateway.catalog import Catalog, Deployment
from turnout.gateway.dialog.conversation import Call
from turnout.gateway.exchange import UpstreamError
from turnout.gateway.measure.circuits import Circuits
from turnout.gateway.stages.attempts.fallback import Failure, Limits, Try, client_error, next_try
from turnout.gateway.stages.attempts.observing import Timing
from turnout.gateway.stages.attempts.refusals import is_refusal
from turnout.gateway.stages.trail import Trail

__all__ = ["Tries", "TryGround"]


@dataclass(frozen=True, slots=True)
class TryGround:
    """What the tries of all requests have in common."""

    catalog: Catalog
    clock: Clock
    limits: Limits
    circuits: Circuits


class Tries:
    """Says whom to ask next; is told how it went, and tells the circuits."""

    def __init__(self, trail: Trail, order: Sequence[DeploymentId], ground: TryGround) -> None:
        self._trail = trail
        self._order = order
        self._ground = ground
        self._clock = ground.clock
        self._reroutes = trail.policy is not None and trail.policy.reroute_refusals
        self._failures: list[Failure] = []
        self._barred: list[DeploymentId] = []
        self._unsaid: GatewayError | None = None
        self._asked = 0.0
        self._first_ms: int | None = None

    async def next(self) -> Deployment:
        """Return whom to ask, after the wait that is due.

        Where nobody is left: the `GatewayError` or `UpstreamError` that the client hears.
        """
        step = self._step()
        if step.wait:
            await self._clock.sleep(step.wait)
        deployment = self._ground.catalog.deployment(step.deployment)
        if deployment is None:
            raise GatewayError(
                f"{step.deployment} is not in the catalog.", status=500, code="internal_error"
            )
        trail = self._trail
        trail.serving = deployment
        trail.repairs = ()
        trail.fallback = deployment.id != self._order[0]
        # What a provider charges for that is never answered: at most the prompt.
        trail.usage = Usage(trail.request.input_tokens_estimate, estimated=True)
        self._asked = self._clock.monotonic()
        self._first_ms = None
        return deployment

    def first_piece(self) -> None:
        """Note when the first visible piece came."""
        if self._first_ms is None:
            self._first_ms = self._since(self._asked)
            self._trail.ttft_ms = self._since(self._trail.began)
            if self._trail.serving is not None:
                self._ground.circuits.answering(self._trail.serving.id)

    def answered(self, calls: Sequence[Call]) -> Timing:
        """Note that whoever was asked has answered, and which tools it called."""
        self._note(200, None)
        self._trail.calls = tuple([call.id for call in calls])
        self._trail.tools_called = tuple([call.name for call in calls])
        if self._trail.serving is not None:
            self._ground.circuits.succeeded(self._trail.serving.id)
        return Timing(self._first_ms, self._since(self._asked))

    def broke_off(self, error: UpstreamError) -> None:
        """Note that whoever was asked failed after the client saw a part."""
        self._note(error.status, str(error))
        if self._trail.serving is not None:
            self._tell(self._trail.serving.id, error)

    def failed(self, error: UpstreamError) -> None:
        """Note that whoever was asked failed before the client saw anything; it costs nothing."""
        self._note(error.status, str(error))
        if self._trail.serving is not None:
            self._tell(self._trail.serving.id, error)
            self._failures.append(Failure(self._trail.serving.id, error))
        self._trail.serving = None
        self._trail.usage = Usage()

    def abandoned(self) -> None:
        """Note that the client went away while somebody was asked."""
        self._note(None, "the client went away")
        if self._trail.serving is not None:
            self._ground.circuits.abandoned(self._trail.serving.id)

    def passed_over(self, error: GatewayError) -> None:
        """Note that the request cannot be said in the shape of whoever was to be asked."""
        self._unsaid = self._unsaid or error
        if self._trail.serving is not None:
            self._ground.circuits.abandoned(self._trail.serving.id)
            self._barred.append(self._trail.serving.id)
        self._trail.serving = None
        self._trail.usage = Usage()

    def _step(self) -> Try:
        """Return the next try; a deployment that fell ill since the decision is passed over."""
        elapsed = self._clock.monotonic() - self._trail.began
        tried = {failure.deployment for failure in self._failures}
        while True:
            order = [id_ for id_ in self._order if id_ not in self._barred]
            step = next_try(
                order,
                self._failures,
                elapsed,
                self._ground.limits,
                reroute_refusals=self._reroutes,
            )
            if step is None:
                raise self._nobody()
            if step.deployment in tried or self._ground.circuits.admits(step.deployment):
                return step
            self._barred.append(step.deployment)

    def _nobody(self) -> GatewayError | UpstreamError:
        if self._failures:
            return client_error(self._failures[-1], self._trail.request.shape)
        if self._unsaid is not None:
            return self._unsaid
        return GatewayError(
            f"{', '.join(self._barred)}: left alone for now, because requests failed there.",
            status=503,
            code="no_eligible_model",
            mend="Send the request again in a moment.",
            retry_after=1.0,
        )

    def _tell(self, deployment: DeploymentId, error: UpstreamError) -> None:
        """Tell the circuits of a failed request, once for all of its tries at a deployment."""
        again = any(failure.deployment == deployment for failure in self._failures)
        if is_refusal(error) or (again and error.status != 429):
            self._ground.circuits.abandoned(deployment)
        else:
            self._ground.circuits.failed(deployment, error)

    def _note(self, status: int | None, error: str | None) -> None:
        serving = self._trail.serving
        if serving is not None:
            self._trail.attempts.append(
                Attempt(serving.id, status, error, self._since(self._asked))
            )

    def _since(self, moment: float) -> int:
        return round((self._clock.monotonic() - moment) * 1000)
