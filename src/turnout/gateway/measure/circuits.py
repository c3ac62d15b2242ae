"""Which deployments are not well: a circuit breaker for each, fed by requests to models alone."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from turnout.core.clock import Clock
from turnout.core.ids import DeploymentId
from turnout.gateway.evidence import Ailment
from turnout.gateway.exchange import UpstreamError

__all__ = ["CircuitLimits", "Circuits", "Newest"]

_REFUSED_US: Final = frozenset({401, 402, 403})
_NOBODY: Final[Mapping[DeploymentId, Ailment]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class CircuitLimits:
    """When a deployment is left alone, and for how long; times in seconds."""

    in_a_row: int = 8
    """Failed requests without one that succeeded."""
    share: float = 0.5
    """Of the requests within `window` that failed."""
    fewest: int = 16
    """Requests within `window` that the share must rest on."""
    window: float = 60.0
    pause: float = 10.0
    """Before one request is let through to try it; doubled each time that one fails."""
    longest_pause: float = 120.0
    trial: float = 60.0
    """For which that one request keeps others out."""
    longest_rest: float = 600.0
    """Most of a Retry-After that is believed."""
    lost: float = 30.0
    """For which a deployment that gave no answer is tried last."""


@dataclass(frozen=True, slots=True)
class Newest:
    """How the newest request to a deployment ended that says something about it."""

    seconds: float
    """Since then."""
    failure: str
    """What it failed with; empty where it was answered."""


@dataclass(slots=True)
class _Health:
    """What is known of one deployment's health; moments in monotonic seconds."""

    in_a_row: int = 0
    latest: deque[tuple[float, bool]] = field(default_factory=lambda: deque(maxlen=256))
    """When each of the latest requests ended, and whether it failed."""
    open_until: float | None = None
    """None: the circuit is closed."""
    pause: float = 0.0
    trial_until: float = 0.0
    rests_until: float = 0.0
    lost_until: float = 0.0
    newest: tuple[float, str] | None = None
    """When the newest request ended, and what it failed with; empty: with nothing."""
    why: str = ""
    why_lost: str = ""

    def is_well(self, now: float) -> bool:
        """Return whether nothing is known against it."""
        return self.open_until is None and self.rests_until <= now and self.lost_until <= now


class Circuits:
    """The breakers of one process.

    A fault of the request itself (400 and the like) counts neither for nor against a deployment.
    """

    def __init__(
        self,
        clock: Clock,
        limits: CircuitLimits | None = None,
        on_unhealthy: Callable[[DeploymentId, str], None] = lambda _deployment, _why: None,
    ) -> None:
        """`on_unhealthy` is told when a circuit opens, and why; it must not wait."""
        self._clock = clock
        self._limits = limits or CircuitLimits()
        self._on_unhealthy = on_unhealthy
        self._all: dict[DeploymentId, _Health] = {}
        self._ill: dict[DeploymentId, _Health] = {}

    def ailing(self) -> Mapping[DeploymentId, Ailment]:
        """Return who is not well now; a deployment that may be tried again is not among them."""
        if not self._ill:
            return _NOBODY
        now = self._clock.monotonic()
        found: dict[DeploymentId, Ailment] = {}
        for id_, health in list(self._ill.items()):
            if health.is_well(now):
                del self._ill[id_]
            elif (ailment := _ailment(health, now)) is not None:
                found[id_] = ailment
        return found

    def newest(self) -> Mapping[DeploymentId, Newest]:
        """Return how the newest request to each deployment ended, since the process began."""
        now = self._clock.monotonic()
        return {
            id_: Newest(now - health.newest[0], health.newest[1])
            for id_, health in list(self._all.items())
            if health.newest is not None
        }

    def admits(self, deployment: DeploymentId) -> bool:
        """Return whether a request may go there now.

        After the pause of an open circuit this is true once: that request tries it for all.
        """
        health = self._ill.get(deployment)
        if health is None:
            return True
        now = self._clock.monotonic()
        if health.rests_until > now:
            return False
        if health.open_until is None:
            return True
        if health.open_until > now or health.trial_until > now:
            return False
        health.trial_until = now + self._limits.trial
        return True

    def answering(self, deployment: DeploymentId) -> None:
        """Note that a deployment has begun to answer: whoever tried it keeps nobody out."""
        if deployment in self._ill:
            self._recovered(deployment)

    def succeeded(self, deployment: DeploymentId) -> None:
        """Note that a deployment has answered."""
        health = self._health(deployment)
        now = self._clock.monotonic()
        health.in_a_row, health.newest = 0, (now, "")
        health.latest.append((now, False))
        if deployment in self._ill:
            self._recovered(deployment)

    def failed(self, deployment: DeploymentId, error: UpstreamError) -> None:
        """Note a failed request; what was wrong with the request itself does not count."""
        now, limits = self._clock.monotonic(), self._limits
        health = self._health(deployment)
        if error.status == 429 and error.retry_after:
            health.rests_until = now + min(error.retry_after, limits.longest_rest)
            self._ill[deployment] = health
        elif _counts(error):
            health.in_a_row, health.newest = health.in_a_row + 1, (now, _kind(error))
            health.latest.append((now, True))
            self._judge(deployment, health, error)
        elif error.status == 429 or error.status in _REFUSED_US:
            health.newest = now, _kind(error)
            self._lost(deployment, health, f"refused with status {error.status} a moment ago")
        health.trial_until = 0.0

    def abandoned(self, deployment: DeploymentId) -> None:
        """Note that a request ended without showing anything of the deployment."""
        if (health := self._ill.get(deployment)) is not None:
            health.trial_until = 0.0

    def _health(self, deployment: DeploymentId) -> _Health:
        health = self._all.get(deployment)
        if health is None:
            health = self._all[deployment] = _Health(pause=self._limits.pause)
        return health

    def _recovered(self, deployment: DeploymentId) -> None:
        health = self._ill.pop(deployment)
        if health.open_until is not None:
            health.latest.clear()
            health.in_a_row = 0
        health.open_until, health.pause = None, self._limits.pause
        health.trial_until = health.rests_until = health.lost_until = 0.0

    def _judge(self, deployment: DeploymentId, health: _Health, error: UpstreamError) -> None:
        now, limits = self._clock.monotonic(), self._limits
        if health.open_until is not None:
            if health.open_until <= now:
                health.pause = min(2 * health.pause, limits.longest_pause)
                health.open_until = now + health.pause
            return
        if error.status is None:
            self._lost(deployment, health, "not reached a moment ago")
        why = self._too_much(health, now)
        if why:
            health.why = f"{why}, the last with {_kind(error)}"
            health.open_until = now + health.pause
            self._ill[deployment] = health
            self._on_unhealthy(deployment, health.why)

    def _too_much(self, health: _Health, now: float) -> str:
        limits, latest = self._limits, health.latest
        if health.in_a_row >= limits.in_a_row:
            return f"{health.in_a_row} requests failed in a row"
        while latest and now - latest[0][0] > limits.window:
            latest.popleft()
        failures = sum([failed for _, failed in latest])
        if len(latest) >= limits.fewest and failures >= limits.share * len(latest):
            return f"{failures} of {len(latest)} requests failed within {limits.window:.0f} s"
        return ""

    def _lost(self, deployment: DeploymentId, health: _Health, why: str) -> None:
        health.lost_until = self._clock.monotonic() + self._limits.lost
        health.why_lost = why
        self._ill[deployment] = health


def _ailment(health: _Health, now: float) -> Ailment | None:
    if health.rests_until > now:
        return Ailment("resting", health.rests_until - now, "it accepts no more requests for now")
    if health.open_until is not None:
        closed_for = max(health.open_until, health.trial_until) - now
        return Ailment("open", closed_for, health.why) if closed_for > 0 else None
    return Ailment("lost", health.lost_until - now, health.why_lost)


def _counts(error: UpstreamError) -> bool:
    return error.status is None or error.status == 408 or error.status >= 500


def _kind(error: UpstreamError) -> str:
    # Never the upstream's own words: they may quote somebody's prompt.
    if error.status is not None:
        return f"status {error.status}"
    return "nothing in time" if error.timed_out else "a broken connection"
