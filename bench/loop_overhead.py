"""How much does the agent's loop add to a run, in time and in memory.

Runs of 20 steps by a scripted model on files in memory: the time that is not the model's, by
steps. It holds what every run does (the fold, the history sent, tools, the record's JSON, the
request's JSON) and what files in memory take. Then one run of 500 steps, whose history is
condensed on its way: what its memory grows by in the second half.
"""

import asyncio
import gc
import time
import tracemalloc
from collections.abc import Sequence

from frame import interleave, parse_options, percentile, report
from turnout.agent.base import AgentConfig
from turnout.agent.wire import encode_request
from turnout.core.events import StepStarted, encode_event
from turnout.core.inference import ModelReply, ModelRequest
from turnout.testing.sandbox import ScriptedSandbox, result
from turns import ForgetfulClient, useful_turn, work

STEPS = 20
MANY = 500
WINDOW = 16_000
OUTPUT = b"".join(b"tests/test_%d.py . passed\n" % n for n in range(60))


class _Encoding(ForgetfulClient):
    """Writes each request as it would be sent, on our time."""

    async def call(self, request: ModelRequest) -> ModelReply:
        encode_request(request)
        return await super().call(request)


def sandbox() -> ScriptedSandbox:
    """Return a workspace of forty modules."""
    files = {f"pkg/{n}.py": f"def f{n}(x):\n    return x + {n}\n" * 40 for n in range(40)}
    made = ScriptedSandbox({"a.py": "x = -2\n", **files})
    made.answer("pytest", result(OUTPUT, code=1))
    return made


def client(steps: int) -> _Encoding:
    """Return a model that finishes at its last step."""
    return _Encoding([useful_turn(step, steps) for step in range(1, steps + 1)])


async def overheads(runs: int) -> Sequence[float]:
    """Return what a step of each run took of our own, in milliseconds."""
    samples = []
    for _ in range(runs):
        model, place = client(STEPS), sandbox()
        started = time.perf_counter()
        async for event in work(model, place, "shell", AgentConfig()):
            encode_event(event)
        ours = time.perf_counter() - started - model.seconds
        samples.append(ours / STEPS * 1000)
    return samples


async def growth_kb(steps: int) -> float:
    """Return by how much the peak of the last fifth of a run lies above that of its middle."""
    config = AgentConfig(max_steps=steps, max_tool_calls=steps + 1, window=WINDOW)
    place, peaks = sandbox(), {"middle": 0, "end": 0}
    done = 0
    tracemalloc.start()
    async for event in work(client(steps), place, "shell", config):
        place.calls.clear()
        place.commands.clear()
        place.inputs.clear()
        if not isinstance(event, StepStarted) or event.kind != "act":
            continue
        done += 1
        part = "middle" if 0.4 < done / steps <= 0.6 else "end" if done / steps > 0.8 else ""
        if part:
            gc.collect()
            peaks[part] = max(peaks[part], tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert done == steps, f"the run ended after {done} steps"
    return round((peaks["end"] - peaks["middle"]) / 1024, 1)


async def main() -> None:
    """Measure and report."""
    options = parse_options("What the agent's loop adds to a run.")
    runs = options.pick(10, 3)
    samples = await interleave({"ours": lambda: overheads(runs)}, rounds=options.pick(7, 3))
    figures = {
        "per_step_p50_ms": round(percentile(samples["ours"], 0.5), 3),
        "per_step_p99_ms": round(percentile(samples["ours"], 0.99), 3),
        "memory_growth_kb": await growth_kb(MANY),
    }
    report("loop_overhead", options, figures, facts={"steps": STEPS, "memory_steps": MANY})


if __name__ == "__main__":
    asyncio.run(main())
