"""Which forks are tried, and when."""

from collections import deque
from typing import Final

from turnout.agent.repair.forking.fork import Fork, forks
from turnout.agent.repair.ladder import Rung
from turnout.core.inference import ModelReply

__all__ = ["Pool"]

_OWN: Final = 8
"""Forks of a reply that are tried before the next whole reply."""
_EARLIER: Final = 2
"""Replies before it of which one fork each is tried then, the most suspected first."""


class Pool:
    """Rungs that go on with replies of others: after each reply some of its forks, and of others.

    A fork costs a fraction of a whole reply: its prompt has been read, and it is short.
    """

    def __init__(self) -> None:
        self._replies: list[deque[Rung]] = []
        self._due: deque[Rung] = deque()

    def add(self, rung: Rung, reply: ModelReply) -> None:
        """Have forks of a reply tried next."""
        found = deque(
            _rung(rung, fork) for fork in forks(reply.message.content, reply.alternatives)
        )
        earlier = [each for each in self._replies if each][:_EARLIER]
        self._due.extend(found.popleft() for _ in range(min(_OWN, len(found))))
        self._due.extend(each.popleft() for each in earlier)
        self._replies.append(found)

    def next(self) -> Rung | None:
        """Take the next fork; None where it is time for another whole reply."""
        return self._due.popleft() if self._due else None

    def last(self) -> Rung | None:
        """Take a fork that was put off, now that there are no more whole replies."""
        for each in sorted(self._replies, key=lambda each: -_likelihood(each)):
            if each:
                return each.popleft()
        return None


def _likelihood(waiting: deque[Rung]) -> float:
    fork = waiting[0].fork if waiting else None
    return fork.logprob if fork else float("-inf")


def _rung(rung: Rung, fork: Fork) -> Rung:
    return Rung(rung.ask, 0.0, rung.seed, rung.target, rung.region, fork)
