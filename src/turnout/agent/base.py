"""What a strategy is given and what it yields."""

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from turnout.core.events import Event
from turnout.core.govern.connections import Connection
from turnout.core.ids import RunId
from turnout.core.inference import ModelReply, ModelRequest, Objective, StepKind, TaskKind
from turnout.core.money import Micros
from turnout.core.runs import TestReport
from turnout.core.tasks import SurfaceName
from turnout.sandbox.testrun import USUAL_TESTS, TestPaths

__all__ = [
    "AgentConfig",
    "Brief",
    "ModelClient",
    "PromptName",
    "StepConfig",
    "Strategy",
]

PromptName = Literal["answer", "condense", "files", "guide", "plan", "review", "shell", "summary"]
"""A file of standing instructions, `prompts/NAME.md`."""


_FREE = Micros(0)
_OWN_TESTS = 300.0


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
        "review": StepConfig("quality", max_tokens=4_000),
    }


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """What users may set about the agent."""

    max_steps: int | None = None
    """Act steps before the run ends with `step_limit`; None: as the surface has it."""
    max_tool_calls: int = 400
    """Tool calls before the run ends with `step_limit`."""
    max_seconds: float | None = None
    """Wall time of the work before the run ends with `capped`; None: no limit of its own."""
    max_spend: Micros | None = None
    """Known cost of a run's model calls before it ends with `capped`; None: the policy's alone."""
    command_timeout: float | None = None
    """Seconds a tool's command may take; None: as the surface has it."""
    test_timeout: float | None = None
    """Seconds one run of the tests may take; None: as the surface has it."""
    output_cap: int | None = None
    """Characters of one tool result that a model reads; None: as the surface has it."""
    summarise_above: int = 4_000
    """Characters of command or test output above which it is summarised first."""
    repair_samples: int = 10
    """Candidates that the repair strategy tries."""
    condense_at: float = 0.7
    """Share of the model's window at which the history is condensed."""
    window: int = 32_768
    """Tokens of a model whose window is not known."""
    extra_tools: tuple[str, ...] = ()
    """Tools beside those of the surface, such as `search_files`."""
    connections: tuple[str, ...] = ()
    """Connections of the gateway whose tools act steps may use: `server` or `server/tool`."""
    mcp: tuple[Connection, ...] = ()
    """MCP servers that run inside the sandbox, whose tools act steps have."""
    approvals: tuple[str, ...] = ()
    """Rules for tool calls that wait for a person: `tool`, or `tool:path pattern`."""
    attempts: int = 1
    """How often a run may try, each time anew, until our own tests pass."""
    escalate_after: int = 1
    """Attempts that fail before act steps are routed for `quality`."""
    review: Literal["off", "annotate", "block"] = "off"
    """What a review agent that reads the change may do."""
    steps: dict[StepKind, StepConfig] = field(default_factory=_default_steps)
    tool_steps: dict[str, StepConfig] = field(default_factory=dict)
    """For the step that carries one named tool, what counts in place of `steps`."""

    @property
    def own_test_timeout(self) -> float:
        """Seconds that one of our own runs of the tests may take."""
        return self.test_timeout or _OWN_TESTS


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
    test_paths: TestPaths = USUAL_TESTS
    """By which a file is one of tests."""
    reachable: tuple[str, ...] = ()
    """Hosts that commands can reach, each with what is to be known of it; no others answer."""
    attempt: int = 1
    """Which attempt of the run this is; its conversations and keys are its own."""
    lessons: str = ""
    """What earlier attempts have shown."""
    objective: Objective | None = None
    """What act steps are routed for in place of their configuration."""
    first_step: int = 1
    """Number of its first step: a run counts its steps over all attempts."""
    spent: Micros = _FREE
    """Known cost of what the run did before this attempt: `max_spend` counts it."""
    seconds: float = 0.0
    """Wall time of the run's work until now, without waits for people: `max_seconds` counts it."""


class ModelClient(Protocol):
    """The way to the gateway."""

    async def call(self, request: ModelRequest) -> ModelReply:
        """Make one model call; `GatewayError` where it was refused or could not be served."""
        ...


class Strategy(Protocol):
    """A way to work on a brief."""

    def run(self, brief: Brief, record: Iterable[Event] = (), /) -> AsyncIterator[Event]:
        """Work, yielding each event before going on; the last one is `LoopEnded`.

        `record`: the events of this attempt that an earlier service has put on record; the work
        goes on from there.
        The caller commits an event before it asks for the next: an intent that was yielded is
        durable before its call starts. Only `SandboxError` and cancellation come out as errors.
        """
        ...
