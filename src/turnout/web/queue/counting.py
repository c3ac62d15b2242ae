"""What becomes of the messages of a queue, counted."""

from typing import Literal

from turnout.core.observe.metrics import Metrics

__all__ = ["QueueMetrics"]


class QueueMetrics:
    """Says how this process stands with its queue; where it has none, there are no such metrics."""

    def __init__(self, metrics: Metrics) -> None:
        self._connected = metrics.gauge(
            "turnout_queue_connected", "Whether messages of the queue can come."
        )
        self._delayed = metrics.gauge(
            "turnout_queue_delayed", "Whether an order of the queue cannot be taken in for now."
        )
        self._messages = metrics.counter(
            "turnout_queue_messages_total",
            "Messages of the queue that are settled, by what became of them.",
            ("outcome",),
        )
        self.connected(False)
        self.delayed(False)

    def connected(self, now: bool) -> None:
        """Say that messages can come, or that they cannot any more."""
        self._connected.set({(): int(now)})

    def delayed(self, now: bool) -> None:
        """Say that an order has to wait, or that none has to."""
        self._delayed.set({(): int(now)})

    def settled(self, outcome: Literal["taken", "refused"]) -> None:
        """Count a message that does not come again."""
        self._messages.add(outcome)
