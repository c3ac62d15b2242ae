"""Where the prompt cache of a provider holds a session's conversation so far."""

from collections import OrderedDict

from turnout.core.clock import Clock
from turnout.core.ids import DeploymentId
from turnout.core.usage import Usage
from turnout.gateway.catalog import Deployment

__all__ = ["WarmCaches"]

_SESSIONS = 10_000
_SHORTEST = 1_024
"""Tokens of input below which providers that cache by themselves keep nothing."""
_NOWHERE: frozenset[DeploymentId] = frozenset()


class WarmCaches:
    """Deployments that lately read or wrote a cache, by session."""

    def __init__(self, clock: Clock, *, seconds: float = 300.0, sessions: int = _SESSIONS) -> None:
        """`seconds`: how long a provider keeps what is not read again."""
        self._clock = clock
        self._seconds = seconds
        self._most = sessions
        self._sessions: OrderedDict[str, dict[DeploymentId, float]] = OrderedDict()

    def note(self, session: str, deployment: Deployment, usage: Usage) -> None:
        """Note an answer; `session` with the scope that it is unique in."""
        if not _cached(deployment, usage):
            return
        self._sessions.setdefault(session, {})[deployment.id] = self._clock.monotonic()
        self._sessions.move_to_end(session)
        if len(self._sessions) > self._most:
            self._sessions.popitem(last=False)

    def of(self, session: str) -> frozenset[DeploymentId]:
        """Return where the session's conversation is still cached."""
        noted = self._sessions.get(session)
        if noted is None:
            return _NOWHERE
        oldest = self._clock.monotonic() - self._seconds
        return frozenset([id_ for id_, at in noted.items() if at > oldest])


def _cached(deployment: Deployment, usage: Usage) -> bool:
    if deployment.caching == "none":
        return False
    if usage.cache_read_input_tokens or usage.cache_creation_input_tokens:
        return True
    return deployment.caching == "automatic" and usage.input_tokens >= _SHORTEST
