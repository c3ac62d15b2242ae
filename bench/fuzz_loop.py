"""Does the agent's loop survive any model: random turns, seeded, thousands of them.

Each run of the loop gets turns that are broken in every way at hand, on files in memory. It must
end in a named outcome, send no invalid history and leave its tests alone; what does not is counted
and its seed named.
"""

import asyncio
import json
import random
import time
from collections import Counter
from typing import get_args

from frame import parse_options, report
from turnout.agent.base import AgentConfig
from turnout.agent.wire import encode_request
from turnout.core.events import Event, LoopEnded
from turnout.core.inference import ModelRequest
from turnout.core.runs import Outcome
from turnout.core.tasks import SurfaceName
from turnout.testing.model_client import ScriptedModelClient
from turnout.testing.recorded import history_faults
from turnout.testing.sandbox import ScriptedSandbox, result
from turnout.testing.turns import Turn
from turns import odd_turn, work

SURFACES: tuple[SurfaceName, ...] = ("guide", "shell", "files")
FAULTS = ("invalid_histories", "unnamed_outcomes", "tests_changed")
TEST = b"def test(): ...\n"
STEPS = 12
TURNS = 10_000
QUICK = 600


def faults(request: ModelRequest) -> tuple[str, ...]:
    """Return what is wrong with the history of a request as it is sent."""
    return history_faults(json.loads(encode_request(request))["messages"])


async def run(seed: int) -> Counter[str]:
    """Run the loop on odd turns; return how it ended, its turns and what went wrong, counted."""
    chance = random.Random(seed)
    seen: Counter[str] = Counter()

    def answer(request: ModelRequest) -> Turn:
        seen["turns"] += 1
        seen["invalid_histories"] += bool(faults(request))
        return odd_turn(chance)

    client = ScriptedModelClient(*[answer] * STEPS, others={"summary": odd_turn(chance)})
    place = ScriptedSandbox({"a.py": "x = 1\n", "test_a.py": TEST, "big": "y" * 30_000})
    place.answer("long", result(b"z" * 9_000, code=1))
    config = AgentConfig(max_steps=STEPS, window=chance.choice((200, 100_000)))
    last: Event | None = None
    async for event in work(client, place, chance.choice(SURFACES), config):
        last = event
    named = isinstance(last, LoopEnded) and last.outcome in get_args(Outcome)
    seen[f"ended_{last.outcome}" if isinstance(last, LoopEnded) else "endless"] += 1
    seen["unnamed_outcomes"] += not named
    seen["tests_changed"] += place.files["test_a.py"].data != TEST
    if any(seen[fault] for fault in FAULTS):
        print(f"seed {seed}: {dict(seen)}")
    return seen


async def main() -> None:
    """Run until enough turns are taken; exit with status 1 where anything went wrong."""
    options = parse_options("Whether the agent's loop survives any model.")
    most, seed = options.pick(TURNS, QUICK), 0
    seen: Counter[str] = Counter()
    started = time.perf_counter()
    while seen["turns"] < most:
        seed += 1
        seen += await run(seed)
    figures = {
        "turns": seen["turns"],
        "runs": seed,
        **{fault: seen[fault] for fault in FAULTS},
        "seconds": round(time.perf_counter() - started, 1),
    }
    ended = {name: number for name, number in seen.items() if name.startswith("ended_")}
    report("fuzz_loop", options, figures, facts=ended)
    if any(seen[fault] for fault in FAULTS):
        raise SystemExit(1)


if __name__ == "__main__":
    asyncio.run(main())
