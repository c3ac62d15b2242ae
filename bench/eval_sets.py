"""Whether the harness tells a model that knows every fix from one that does nothing, on real bugs.

Two scripted models work on the instances of a file: one applies the fix that the row holds, the
other says that it is done. Anything but all resolved and none resolved is a defect of the harness
or of the set.
"""

import argparse
import asyncio
import json
import time
from collections import Counter
from pathlib import Path

from children import end_on_term
from evaluations import open_set, tiny_rows
from frame import Options, report
from turnout.evals.instances.load import load_instances
from turnout.evals.instances.model import Instance

_LONGEST = 14_400.0


def parse() -> argparse.Namespace:
    """Read the command line."""
    end_on_term()
    parser = argparse.ArgumentParser(description="Are known results found?")
    parser.add_argument("--quick", action="store_true", help="45 seconds at most; keep no result")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    parser.add_argument("--tasks", type=Path, help="JSON lines of instances with their fixes")
    parser.add_argument("--repos", type=Path, help="folder of clones")
    parser.add_argument("--limit", type=int, default=20, help="the first N instances")
    parser.add_argument("--mode", default="hidden", help="hidden or visible")
    parser.add_argument("--concurrency", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=900.0, help="wall time of one run")
    parser.add_argument("--keep", type=Path, help="where the results are copied to")
    return parser.parse_args()


async def _rows(wanted: argparse.Namespace) -> tuple[str, dict[str, str]]:
    if wanted.tasks is None or wanted.quick:
        return tiny_rows(1)
    instances = (await load_instances(wanted.tasks, repositories=wanted.repos))[: wanted.limit]
    names = {instance.instance_id for instance in instances}
    lines = [line for line in wanted.tasks.read_text("utf-8").splitlines() if line.strip()]
    kept = [line for line in lines if json.loads(line)["instance_id"] in names]
    fixes = {_opening(instance): instance.patch for instance in instances}
    return "".join(f"{line}\n" for line in kept), fixes


def _opening(instance: Instance) -> str:
    """Return how a task begins, whatever its tests are found to fail with once it is proven."""
    return "\n".join(instance.problem_statement.split("\n")[:4])


async def main() -> None:
    """Run both on the set and count."""
    wanted = parse()
    rows, fixes = await _rows(wanted)
    asked = ["--mode", wanted.mode, "--concurrency", str(wanted.concurrency)]
    asked += ["--seconds", str(wanted.seconds)]
    if wanted.repos is not None:
        asked += ["--repos", str(wanted.repos.absolute())]
    async with open_set(rows, fixes) as one:
        begun = time.monotonic()
        code = await one.run(*asked, seconds=_LONGEST)
        trials = one.trials()
        if wanted.keep is not None:
            wanted.keep.write_bytes(one.results.read_bytes())
    grades = Counter((trial.arm, trial.grade) for trial in trials)
    odd = [t for t in trials if (t.grade == "resolved") != (t.arm == "model:gold")]
    for trial in odd:
        print(f"{trial.instance_id}, {trial.arm}: {trial.grade}: {trial.detail} {trial.reason}")
    report(
        "eval_sets",
        Options(wanted.quick, wanted.json),
        {
            "instances": rows.count("\n"),
            "gold_resolved": grades["model:gold", "resolved"],
            "idle_resolved": grades["model:idle", "resolved"],
            "infrastructure": sum(trial.grade == "infrastructure" for trial in trials),
            "seconds": round(time.monotonic() - begun, 1),
            "exit_code": code,
            "odd": " ".join(sorted({trial.instance_id for trial in odd})),
        },
        facts={"mode": wanted.mode, "tasks": wanted.tasks.name if wanted.tasks else "tiny"},
    )


if __name__ == "__main__":
    asyncio.run(main())
