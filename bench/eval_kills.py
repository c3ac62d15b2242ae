"""What becomes of an evaluation whose process is killed again and again.

Two scripted models work on a set of tiny instances. The command is killed at random points and
given again. A trial is lost where a unit has no result at the end, and run twice where it has two
results or where more runs are on record than there are units.
"""

import asyncio
import random
from collections import Counter

from evaluations import ARMS, Set, open_set, tiny_rows
from frame import Options, parse_options, report

_SEED = 7
_LONGEST = 1_800.0
_BEGIN = 120.0
"""Seconds until a process has asked a model, at most."""


async def killed_after(one: Set, seconds: float, *options: str) -> bool:
    """Start the command and kill it so long after it works; False where it has ended before."""
    one.asked.clear()
    process = await one.start(*options)
    ended = asyncio.create_task(process.wait())
    works = asyncio.create_task(one.asked.wait())
    await asyncio.wait({ended, works}, timeout=_BEGIN, return_when=asyncio.FIRST_COMPLETED)
    works.cancel()
    try:
        async with asyncio.timeout(seconds):
            await asyncio.shield(ended)
    except TimeoutError:
        process.kill()
        await ended
        return True
    return False


async def main(options: Options) -> None:
    """Kill it, let it come to its end, and count."""
    instances, kills = options.pick(30, 2), options.pick(10, 1)
    chance = random.Random(_SEED)
    asked = ("--concurrency", "4")
    done = 0
    async with open_set(*tiny_rows(instances)) as one:
        for _ in range(kills):
            done += await killed_after(one, chance.uniform(0.0, options.pick(6, 1)), *asked)
        code = await one.run(*asked, seconds=_LONGEST)
        units = instances * len(ARMS)
        counts = Counter(trial.unit for trial in one.rows())
        runs = await one.run_ids()
        grades = Counter((trial.arm, trial.grade) for trial in one.trials())
        for trial in one.trials():
            if (trial.grade == "resolved") != (trial.arm == "model:gold"):
                print(f"{trial.unit}: {trial.grade}, {trial.outcome}: {trial.detail}")
        report(
            "eval_kills",
            options,
            {
                "kills": done,
                "units": units,
                "lost": units - len(counts),
                "results_twice": sum(count - 1 for count in counts.values()),
                "runs_beyond_units": len(runs) - units,
                "gold_resolved": grades["model:gold", "resolved"],
                "idle_resolved": grades["model:idle", "resolved"],
                "exit_code": code,
                "model_calls": len(one.server.requests),
            },
        )


if __name__ == "__main__":
    asyncio.run(main(parse_options("What becomes of an evaluation that is killed?")))
