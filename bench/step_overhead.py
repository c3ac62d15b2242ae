"""How much does it cost to keep the record of a step.

Every commit of one step: its start, the intent and the answer of its model call, the intent of its
tool call and its result with a checkpoint. On SQLite as it is set up, and on PostgreSQL where that
is installed, a server of our own; both wait for the disk.
"""

import asyncio
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from uuid import uuid4

from frame import Batch, interleave, parse_options, percentile, report
from turnout.core.events import (
    CheckpointMade,
    Event,
    ModelCallDone,
    ModelCallIntended,
    RunStarted,
    StepStarted,
    ToolCallDone,
    ToolCallIntended,
)
from turnout.core.ids import (
    DeploymentId,
    ModelId,
    ProviderName,
    RequestId,
    RunId,
    SessionId,
    ToolCallId,
)
from turnout.core.inference import RoutingReport
from turnout.core.messages import AssistantMessage, UserMessage
from turnout.core.money import Micros
from turnout.core.tasks import Task
from turnout.core.tools import ToolCall, ToolResult
from turnout.core.usage import Usage
from turnout.store.database import open_database
from turnout.store.record import RecordStore
from turnout.testing.fleet.postgres import postgres_programs, running_postgres

AT = datetime(2026, 1, 1, tzinfo=UTC)
STEPS = 20
CALL = ToolCall(ToolCallId("call-1"), "run", '{"command": "pytest -q"}')
ROUTING = RoutingReport(
    model=ModelId("m"),
    provider=ProviderName("p"),
    deployment=DeploymentId("p/m"),
    objective="latency",
    task="coding",
    task_source="request",
    session=SessionId("run-1"),
    sticky=False,
    fallback=False,
    policy_revision=1,
    reason="It is the fastest that is good enough.",
    cost_micros=Micros(100),
)


def commits(step: int) -> Sequence[Sequence[Event]]:
    """Return the events of a step, those that are committed together together."""
    key = f"run-1-step-{step}"
    said = AssistantMessage("I look at the tests first. " * 8, (CALL,))
    result = ToolResult(CALL.id, "exit 1\n" + "tests/test_a.py::test_one FAILED\n" * 60)
    return (
        [StepStarted(step, "act", "latency")],
        [ModelCallIntended(step, "act", "main", key, "auto", (UserMessage("Go on."),))],
        [
            ModelCallDone(
                step,
                "act",
                "main",
                key,
                RequestId("req-1"),
                said,
                "tool_calls",
                Usage(),
                ROUTING,
                9,
            )
        ],
        [ToolCallIntended(step, CALL)],
        [ToolCallDone(step, result, 0.1), CheckpointMade("0a", "c0", ("0a",), 4096, 0.1)],
    )


async def steps(store: RecordStore) -> Sequence[float]:
    """Return what the record of each step of a run took, in milliseconds."""
    run_id = RunId(f"run-{uuid4().hex[:12]}")
    task = Task("test_pages fails; fix the code", "/repo")
    epoch = await store.begin(run_id, RunStarted(task, "c" * 40, "loop"), AT)
    samples = []
    for step in range(1, STEPS + 1):
        together = commits(step)
        started = time.perf_counter()
        for events in together:
            await store.append_all(run_id, epoch, events, AT)
        samples.append((time.perf_counter() - started) * 1000)
    return samples


async def main() -> None:
    """Measure both databases in turns."""
    options = parse_options(__doc__ or "")
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turnout-bench-")))
        places: dict[str, Path | str] = {"sqlite": folder / "turnout.db"}
        programs = postgres_programs()
        if programs is not None:
            places["postgresql"] = stack.enter_context(running_postgres(programs)).url
        cases: dict[str, Batch] = {}
        for name, place in places.items():
            database = await stack.enter_async_context(open_database(place))
            cases[name] = partial(steps, RecordStore(database))
        samples = await interleave(cases, rounds=options.pick(20, 5))
    figures = {
        f"{name}_step_{what}_ms": round(percentile(found, share), 2)
        for name, found in samples.items()
        for what, share in (("p50", 0.5), ("p99", 0.99))
    }
    report("step_overhead", options, figures, facts={"steps": STEPS, "commits_of_a_step": 5})


if __name__ == "__main__":
    asyncio.run(main())
