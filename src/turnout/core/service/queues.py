"""A queue of messages that orders come from."""

from dataclasses import dataclass

__all__ = ["QueueOptions"]


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """Where messages wait, and for whom their runs are."""

    url_variable: str
    """Environment variable with the server's URL, which may hold a password: `redis://`,
    `rediss://`, `amqp://` or `amqps://`."""
    name: str = "turnout.runs"
    """Of the stream at Redis, or of the queue at RabbitMQ."""
    dead: str = "turnout.runs.dead"
    """Of the one that messages end in which are no order that can be taken."""
    group: str = "turnout"
    """At Redis, the consumer group: each of its messages is taken by one of its members."""
    key: str | None = None
    """Name of the key of ours that orders are charged to; None: as callers without a key."""
