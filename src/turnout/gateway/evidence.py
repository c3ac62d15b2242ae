"""What was measured of deployments; unknown stays unknown."""

from dataclasses import dataclass
from datetime import datetime

from turnout.core.ids import DeploymentId
from turnout.gateway.catalog import ToolSupport

__all__ = ["Evidence", "ProbeResult"]


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What asking a deployment for tool calls showed, once."""

    deployment: DeploymentId
    at: datetime
    tools: ToolSupport
    calls_in_text: bool
    """The server left its calls in the message text, where they could be read."""
    enforces_tool_choice: bool
    json_schema: bool
    detail: str
    """One sentence for people."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Live figures of one deployment; None where nothing was seen yet."""

    deployment: DeploymentId
    tools: ToolSupport = "unknown"
    tool_success: float | None = None
    """Share of well-formed tool calls, 0 to 1."""
    tool_samples: int = 0
    ttft_ms_p50: float | None = None
    tokens_per_second_p50: float | None = None
    latency_samples: int = 0
    lost: bool = False
    """Whether its last attempt, a moment ago, brought no answer at all."""
