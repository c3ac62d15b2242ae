"""How the service is set up, and where it is."""

from dataclasses import dataclass, field

from turnout.core.service.repositories import RepositoryBook

__all__ = ["ServiceAddress", "ServiceOptions"]


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


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """Where a service is, and who asks."""

    base_url: str
    """Without `/v1`."""
    key: str = field(default="", repr=False)
