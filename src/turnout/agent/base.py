"""What a strategy is given and what it yields."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Protocol

from turnout.core.events import Event
from turnout.core.ids import RunId
from turnout.core.inference import ModelReply, ModelRequest, Objective, StepKind, TaskKind
from turnout.core.runs import TestReport
from turnout.core.tasks import SurfaceName

__all__ = ["AgentConfig", "Brief", "ModelClient", "StepConfig", "Strategy"]


@dataclass(frozen=True, slots=True)
class StepConfig:
    """How the model calls of one kind of step are made."""

    objective: Objective
    task: TaskKind = "coding"
    max_tokens: int = 1_000
    thinking: bool | None = None
    model: str = "auto"


def _default_steps() -> dict[StepKind, StepConfig]:
    return {
        "plan": StepConfig("quality", max_tokens=600),
        "act": StepConfig("latency", max_tokens=4_000, thinking=False),
        "summary": StepConfig("cost", "summarisation", max_tokens=400, thinking=False),
        "answer": StepConfig("quality", max_tokens=1_500),
    }


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """What users may set about the agent."""

    max_steps: int = 40
    """Act steps before the run ends with `step_limit`."""
    command_timeout: float = 120.0
    """Seconds a tool's command may take."""
    test_timeout: float = 300.0
    """Seconds one run of the tests may take."""
    output_cap: int = 8_000
    """Characters of one tool result that a model reads."""
    summarise_above: int = 4_000
    """Characters of command or test output above which it is summarised first."""
    repair_samples: int = 10
    """Candidates that the repair strategy tries."""
    steps: dict[StepKind, StepConfig] = field(default_factory=_default_steps)


@dataclass(frozen=True, slots=True)
class Brief:
    """What a strategy works on."""

    run_id: RunId
    prompt: str
    surface: SurfaceName
    test_command: str | None
    """Shell command for the workspace; None where there are no tests."""
    tests_before: TestReport | None
    """Our own run at base; None where there are no tests."""
    test_files: tuple[str, ...] = ()
    """Existing test files of the workspace: never to be changed."""
    reachable: tuple[str, ...] = ()
    """Hosts that commands can reach, each with what is to be known of it; no others answer."""


class ModelClient(Protocol):
    """The way to the gateway."""

    async def call(self, request: ModelRequest) -> ModelReply:
        """Make one model call; `GatewayError` where it was refused or could not be served."""
        ...


class Strategy(Protocol):
    """A way to work on a brief."""

    def run(self, brief: Brief) -> AsyncIterator[Event]:
        """Work, yielding each event before going on; the last one is `LoopEnded`.

        The caller commits an event before it asks for the next: an intent that was yielded is
        durable before its call starts. Only `SandboxError` and cancellation come out as errors.
        """
        ...
