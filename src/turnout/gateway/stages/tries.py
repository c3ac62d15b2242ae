"""One request's walk over the deployments, noted on its trail."""

from collections.abc import Sequence

from turnout.core.clock import Clock
from turnout.core.ids import DeploymentId
from turnout.core.receipts import Attempt
from turnout.core.usage import Usage
from turnout.errors import GatewayError
from turnout.gateway.catalog import Catalog, Deployment
from turnout.gateway.exchange import UpstreamError
from turnout.gateway.stages.call_table import StreamedCall
from turnout.gateway.stages.fallback import Failure, Limits, client_error, next_try
from turnout.gateway.stages.observing import Timing
from turnout.gateway.stages.trail import Trail

__all__ = ["Tries"]


class Tries:
    """Says whom to ask next; is told how it went."""

    def __init__(
        self,
        trail: Trail,
        order: Sequence[DeploymentId],
        catalog: Catalog,
        clock: Clock,
        limits: Limits,
    ) -> None:
        self._trail = trail
        self._order = order
        self._catalog = catalog
        self._clock = clock
        self._limits = limits
        self._failures: list[Failure] = []
        self._asked = 0.0
        self._first_ms: int | None = None

    async def next(self) -> Deployment:
        """Return whom to ask, after the wait that is due.

        Where nobody is left: the `GatewayError` or `UpstreamError` that the client hears.
        """
        elapsed = self._clock.monotonic() - self._trail.began
        step = next_try(self._order, self._failures, elapsed, self._limits)
        if step is None:
            raise client_error(self._failures[-1])
        if step.wait:
            await self._clock.sleep(step.wait)
        deployment = self._catalog.deployment(step.deployment)
        if deployment is None:
            raise GatewayError(
                f"{step.deployment} is not in the catalog.", status=500, code="internal_error"
            )
        self._trail.serving = deployment
        self._trail.repairs = ()
        self._trail.fallback = deployment.id != self._order[0]
        # What a provider charges for that is never answered: at most the prompt.
        self._trail.usage = Usage(self._trail.request.input_tokens_estimate, estimated=True)
        self._asked = self._clock.monotonic()
        self._first_ms = None
        return deployment

    def first_piece(self) -> None:
        """Note when the first visible piece came."""
        if self._first_ms is None:
            self._first_ms = self._since(self._asked)
            self._trail.ttft_ms = self._since(self._trail.began)

    def answered(self, calls: Sequence[StreamedCall]) -> Timing:
        """Note that whoever was asked has answered, and which tools it called."""
        self._note(200, None)
        self._trail.calls = tuple(call.id for call in calls)
        self._trail.tools_called = tuple(call.name for call in calls)
        return Timing(self._first_ms, self._since(self._asked))

    def broke_off(self, error: UpstreamError) -> None:
        """Note that whoever was asked failed after the client saw a part."""
        self._note(error.status, str(error))

    def failed(self, error: UpstreamError) -> None:
        """Note that whoever was asked failed before the client saw anything; it costs nothing."""
        self._note(error.status, str(error))
        if self._trail.serving is not None:
            self._failures.append(Failure(self._trail.serving.id, error))
        self._trail.serving = None
        self._trail.usage = Usage()

    def abandoned(self) -> None:
        """Note that the client went away while somebody was asked."""
        self._note(None, "the client went away")

    def _note(self, status: int | None, error: str | None) -> None:
        serving = self._trail.serving
        if serving is not None:
            self._trail.attempts.append(
                Attempt(serving.id, status, error, self._since(self._asked))
            )

    def _since(self, moment: float) -> int:
        return round((self._clock.monotonic() - moment) * 1000)
