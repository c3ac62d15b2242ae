"""What the harness of an evaluation costs beside the runs and their tests, one and eight at once.

Two scripted models work on a set of tiny instances. The overhead of a trial is its wall time
without the run, from its first to its last entry, and without the grading. A false time-out is a
trial of the model that knows every fix which is not resolved.
"""

import asyncio
import time
from statistics import mean

from evaluations import ARMS, open_set, tiny_rows
from frame import Figures, Options, parse_options, percentile, report

_LONGEST = 1_800.0


async def measured(count: int, at_once: int) -> Figures:
    """Run a set with so many trials at once."""
    async with open_set(*tiny_rows(count)) as one:
        begun = time.monotonic()
        code = await one.run("--concurrency", str(at_once), seconds=_LONGEST)
        wall = time.monotonic() - begun
        trials = one.trials()
    # The first of each arm finds nothing prepared.
    overheads = [[trial.overhead_seconds for trial in trials]]
    gold = [trial for trial in trials if trial.arm == "model:gold"]
    idle = [trial for trial in trials if trial.arm == "model:idle"]
    return {
        "trials": len(trials),
        "missing": count * len(ARMS) - len(trials),
        "overhead_p50_s": round(percentile(overheads, 0.5), 3),
        "overhead_p95_s": round(percentile(overheads, 0.95), 3),
        "overhead_max_s": round(max(overheads[0]), 3),
        "run_mean_s": round(mean(trial.seconds for trial in trials), 2),
        "grading_mean_s": round(mean(trial.grading_seconds for trial in gold), 2),
        "false_time_outs": sum(trial.grade != "resolved" for trial in gold),
        "idle_resolved": sum(trial.grade == "resolved" for trial in idle),
        "wall_s": round(wall, 1),
        "exit_code": code,
    }


async def main(options: Options) -> None:
    """Measure one at a time, then eight at once."""
    count = options.pick(16, 2)
    figures: dict[str, float | int | str | None] = {}
    for at_once in (1, 8):
        found = await measured(count, at_once)
        figures |= {f"{name}_{at_once}": value for name, value in found.items()}
    report("eval_overhead", options, figures)


if __name__ == "__main__":
    asyncio.run(main(parse_options("What does the harness of an evaluation cost?")))
