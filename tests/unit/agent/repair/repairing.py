"""A run of the repair strategy: scripted model and sandbox, tests that look at the file."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from turnout.agent.base import AgentConfig, Brief
from turnout.agent.repair import RepairStrategy
from turnout.core.events import (
    Event,
    LoopEnded,
)
from turnout.core.ids import RunId
from turnout.core.runs import TestReport
from turnout.sandbox.base import Sandbox
from turnout.testing.clock import FrozenClock
from turnout.testing.model_client import Answer, ScriptedModelClient
from turnout.testing.sandbox import ScriptedSandbox
from turnout.testing.turns import Turn

E = TypeVar("E")

CODE = "def add(a, b):\n    return a - b\n\n\ndef half(a):\n    return a / 2\n"
TEST = "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"
OUTPUT = "=== FAILURES ===\n___ test_add ___\nE   assert -1 == 3\n"
FAILING = TestReport("pytest", 1, (), ("test_calc.py::test_add",), 0.5, OUTPUT)


def reply(body: str) -> Turn:
    """Answer with a corrected `add`."""
    return Turn(f"```python\ndef add(a, b):\n    return {body}\n```")


@dataclass
class Suite:
    """Tests that pass where the code adds; each run notes what it was asked for."""

    right: str = "a + b"
    suite_passes: bool = True
    selectors: list[str] = field(default_factory=list)
    timeouts: list[float] = field(default_factory=list)

    async def __call__(
        self, sandbox: Sandbox, command: str, *, selector: str = "", timeout: float
    ) -> TestReport:
        """Look at the file instead of running it."""
        self.selectors.append(selector)
        self.timeouts.append(timeout)
        code = (await sandbox.read("calc.py")).data.decode()
        passes = self.right in code and (self.suite_passes or bool(selector))
        node = ("test_calc.py::test_add",)
        return TestReport(
            command, 0 if passes else 1, node if passes else (), () if passes else node, 0.1, ""
        )


@dataclass
class Work:
    """One run of the strategy and all that it touched."""

    client: ScriptedModelClient
    sandbox: ScriptedSandbox
    tests: Suite
    events: list[Event]

    def of(self, kind: type[E]) -> list[E]:
        """Return the events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def end(self) -> LoopEnded:
        """Return the last event."""
        last = self.events[-1]
        assert isinstance(last, LoopEnded)
        return last

    @property
    def code(self) -> str:
        """Return the file as it is now."""
        return self.sandbox.files["calc.py"].data.decode()


async def work(
    *turns: Answer,
    samples: int = 6,
    before: TestReport | None = FAILING,
    tests: Suite | None = None,
    files: Sequence[tuple[str, str]] = (("calc.py", CODE), ("test_calc.py", TEST)),
    first_step: int = 1,
    branches: bool = False,
    **changes: Any,
) -> Work:
    """Run the strategy to its end."""
    client, sandbox = ScriptedModelClient(*turns), ScriptedSandbox(dict(files))
    tests = tests or Suite()
    config = AgentConfig(repair_samples=samples, **changes)
    clock = FrozenClock()
    strategy = RepairStrategy(client, sandbox, config, clock, branches=branches, run_tests=tests)
    brief = Brief(RunId("run-1"), "add is wrong", "guide", "pytest", before, ("test_calc.py",))
    if first_step > 1:
        brief = replace(brief, attempt=3, first_step=first_step, objective="quality")
    return Work(client, sandbox, tests, [event async for event in strategy.run(brief)])
