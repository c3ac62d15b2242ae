"""What is told to those who watch, and where."""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["ObserveOptions"]


@dataclass(frozen=True, slots=True)
class ObserveOptions:
    """How a service is watched over."""

    traces_url: str | None = None
    """Where spans are sent, as OTLP over HTTP; None: nowhere."""
    traces_doubt: str = ""
    """Why spans are sent nowhere though somebody has named a place; empty where that is so."""
    traces_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """May hold credentials."""
    resource: Mapping[str, str] = field(default_factory=dict)
    """What is said of this service with its spans, `service.name` at least."""
    content: bool = False
    """Whether spans hold what was said: prompts, answers, arguments and results of tools."""
    propagate: bool = False
    """Whether model providers are told which trace a request belongs to."""
    metrics_variable: str | None = None
    """Names the variable of a key that opens `/metrics` and nothing else."""
