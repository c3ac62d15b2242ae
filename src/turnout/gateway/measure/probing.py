"""Probing deployments on demand: one after the other from a shell, or beside a gateway."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from types import TracebackType
from typing import Final, Literal, Self

from turnout.core.clock import Clock
from turnout.core.ids import DeploymentId
from turnout.errors import FullError, ModelUnavailableError, NotFoundError, StoreError
from turnout.gateway.catalog import Catalog, Deployment
from turnout.gateway.dialog.conversation import Shape
from turnout.gateway.evidence import ProbeResult
from turnout.gateway.exchange import UpstreamError
from turnout.gateway.measure.asking import Asking
from turnout.gateway.measure.examine import Examiner, ExamLimits
from turnout.gateway.measure.probe import probe
from turnout.gateway.measure.settle import keep_result, settled_by
from turnout.gateway.measure.unavailable import unavailable
from turnout.gateway.ports import ProbeStore, Upstream
from turnout.gateway.wire.base import UpstreamShape

__all__ = ["ProbeDesk", "ProbeStanding", "ProbeState", "Prober"]

_AT_ONCE: Final = 2
"""Probes under way in one process: each sends some 28 requests."""

ProbeState = Literal["running", "done", "failed"]


@dataclass(frozen=True, slots=True)
class Prober:
    """Probes and examines one deployment, and keeps the result as evidence."""

    catalog: Catalog
    upstream: Upstream
    shapes: Mapping[Shape, UpstreamShape]
    store: ProbeStore
    clock: Clock

    async def probe(
        self, deployment: Deployment, examiner: Examiner
    ) -> ProbeResult | ModelUnavailableError:
        """Return what the deployment showed, or why it could not be asked.

        `StoreError` where the result could not be kept.
        """
        provider = self.catalog.providers[deployment.provider]
        shape = self.shapes[provider.shape]
        asking = Asking(self.upstream, shape, provider, deployment, self.clock)
        try:
            found = await probe(asking, self.clock)
            settled = asking.as_if(settled_by(deployment, found))
            examined = await examiner.examine(settled, tools=found.tools == "confirmed")
        except UpstreamError as error:
            return unavailable(error, provider, deployment)
        result = replace(found, examined=examined)
        await keep_result(self.store, provider, deployment, result)
        return result


@dataclass(frozen=True, slots=True)
class ProbeStanding:
    """How far a probe is that somebody asked for."""

    deployment: DeploymentId
    state: ProbeState
    by: str
    """Name of the key that asked for it."""
    at: datetime
    """When it began; once it is over, when it ended."""
    answered: int = 0
    asked: int = 0
    """How many answers are wanted; 0 until the examination begins."""
    detail: str = ""
    """One sentence on how it ended; empty while it runs."""


class ProbeDesk:
    """Runs probes beside a gateway, few at a time, each deployment once at a time.

    `async with desk` ends what still runs at the end of the block.
    """

    def __init__(
        self,
        prober: Prober,
        learn: Callable[[ProbeResult], None],
        limits: ExamLimits | None = None,
    ) -> None:
        """`learn` is told of each result, so that decisions go by it at once."""
        self._prober = prober
        self._learn = learn
        self._limits = limits or ExamLimits()
        self._standings: dict[DeploymentId, ProbeStanding] = {}
        self._tasks: dict[DeploymentId, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def standings(self) -> Mapping[DeploymentId, ProbeStanding]:
        """Return how the newest probe of each deployment stands, of those that were asked for."""
        return dict(self._standings)

    def start(self, wanted: DeploymentId, *, by: str) -> ProbeStanding:
        """Begin a probe and return how it stands; one that runs goes on.

        `NotFoundError` for what the catalog does not have, `ModelUnavailableError` without a key of
        its provider, `FullError` where as many run as may.
        """
        deployment = self._prober.catalog.deployment(wanted)
        if deployment is None:
            raise NotFoundError(f"There is no deployment {wanted!r}.")
        unset = self._prober.catalog.providers[deployment.provider].unset_key
        if unset:
            raise ModelUnavailableError(
                f"{wanted} cannot be asked: {unset} is not set.",
                mend=f"Set {unset} where the service runs.",
            )
        if wanted in self._tasks:
            return self._standings[wanted]
        if len(self._tasks) >= _AT_ONCE:
            raise FullError(
                f"{_AT_ONCE} probes run already.", mend="Wait until one of them has ended."
            )
        began = ProbeStanding(wanted, "running", by, self._prober.clock.now())
        self._standings[wanted] = began
        self._tasks[wanted] = asyncio.create_task(self._run(deployment))
        return began

    async def _run(self, deployment: Deployment) -> None:
        state: ProbeState = "failed"
        detail = "The service stopped before its end."
        try:
            state, detail = await self._outcome(deployment)
        finally:
            del self._tasks[deployment.id]
            standing, now = self._standings[deployment.id], self._prober.clock.now()
            self._standings[deployment.id] = replace(standing, state=state, detail=detail, at=now)

    async def _outcome(self, deployment: Deployment) -> tuple[ProbeState, str]:
        def answered(done: int, of: int) -> None:
            standing = self._standings[deployment.id]
            self._standings[deployment.id] = replace(standing, answered=done, asked=of)

        examiner = Examiner(self._prober.clock, self._limits, answered)
        try:
            found = await self._prober.probe(deployment, examiner)
        except StoreError as error:
            return "failed", str(error)
        if isinstance(found, ModelUnavailableError):
            return "failed", str(found)
        self._learn(found)
        return "done", found.detail
