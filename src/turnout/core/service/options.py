"""How the service is set up, and where it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from turnout.core.service.checkpoints import CheckpointOptions
from turnout.core.service.forges import Forge
from turnout.core.service.queues import QueueOptions
from turnout.core.service.repositories import RepositoryBook
from turnout.core.service.retention import Retention

__all__ = ["EVERY_ROLE", "NotifyOptions", "ServiceAddress", "ServiceOptions", "ServiceRole"]

ServiceRole = Literal["api", "gateway", "worker"]
"""What a process of the service does: takes runs in and tells of them; serves models to agents and
to workers; works on runs."""

EVERY_ROLE: Final[frozenset[ServiceRole]] = frozenset({"api", "gateway", "worker"})


@dataclass(frozen=True, slots=True)
class NotifyOptions:
    """How the addresses that orders name are told of their runs."""

    secret_variable: str = ""
    """Variable of the service that holds the secret; empty: orders may name none."""
    allow_private: bool = False
    """Whether they may be on private networks, and plain `http`."""


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """What it works on, and how much at once."""

    repositories: RepositoryBook = field(default_factory=RepositoryBook)
    workers: int = 2
    """Runs that one process works on at once."""
    per_project: int | None = None
    """Runs of one project at once, over all processes; None: as many as there are workers."""
    per_repository: int | None = None
    """Runs on one repository at once, over all processes."""
    queued_per_project: int = 1_000
    """Runs of one project that may wait to begin; an order beyond that is refused for now."""
    retention: Retention = field(default_factory=Retention)
    checkpoints: CheckpointOptions = field(default_factory=CheckpointOptions)
    forges: Mapping[str, Forge] = field(default_factory=dict)
    """By name."""
    notify: NotifyOptions = field(default_factory=NotifyOptions)
    queue: QueueOptions | None = None
    """None: orders come over HTTP alone."""


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """Where a service is, and who asks."""

    base_url: str
    """Without `/v1`."""
    key: str = field(default="", repr=False)
