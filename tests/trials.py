"""Trials for tests of what is made of them."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from turnout.core.ids import RunId
from turnout.core.money import Micros
from turnout.evals.conditions.model import (
    ArmUnder,
    Conditions,
    Limits,
    Machine,
    ModelUsed,
    TaskSet,
)
from turnout.evals.grading.model import GradeName
from turnout.evals.trials.model import KindUsage, Trial

__all__ = ["arm_of_trials", "conditions_of", "trial"]


def trial(name: str, grade: GradeName = "resolved", **fields: Any) -> Trial:
    """Make one trial; `fields` are those of `Trial`, in place of what is usual."""
    usual = Trial(
        instance_id=name,
        instance_digest=f"row-{name}",
        grade=grade,
        run_id=RunId(f"run-{name}"),
        outcome="answered",
        steps=3,
        seconds=30.0,
        cost_micros=Micros(1_000),
    )
    return replace(usual, **fields)


def arm_of_trials(arm: str, grades: Sequence[GradeName], *, cost: int = 1_000) -> list[Trial]:
    """Make one trial of an arm for each grade, on tasks that are named by their place.

    Plan and answer cost twice what act steps do.
    """
    return [
        trial(
            f"task-{place:02}",
            grade,
            arm=arm,
            arm_digest=f"digest-{arm}",
            repo=f"example/repo-{place % 3}",
            difficulty=("1", "2-5", "6-20", ">20")[place % 4],
            title=f"Fix number {place}",
            cost_micros=Micros(cost),
            tool_calls=10,
            tool_failures=place % 3,
            usage=(
                KindUsage("plan", f"strong-{arm}", 1, 4_000, 300, 0, Micros(cost // 2), 4.0),
                KindUsage("act", f"fast-{arm}", 8, 40_000, 900, 30_000, Micros(cost // 3), 9.0),
                KindUsage("answer", f"strong-{arm}", 1, 5_000, 200, 0, Micros(cost // 6), 3.0),
            ),
            started_at=datetime(2026, 3, 1, tzinfo=UTC) + timedelta(minutes=place),
            diff="--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n",
        )
        for place, grade in enumerate(grades)
    ]


def conditions_of(**fields: Any) -> Conditions:
    """Make what a command ran under; `fields` are those of `Conditions`, as for `trial`."""
    usual = Conditions(
        at=datetime(2026, 3, 1, tzinfo=UTC),
        harness="1.2",
        tasks=TaskSet("tasks.jsonl", tuple((f"task-{n:02}", f"row-task-{n:02}") for n in range(4))),
        mode="hidden",
        strict=False,
        repeats=1,
        surface="guide",
        arms=(
            ArmUnder("auto", "digest-auto", "auto", "default", 3, "p0licy"),
            ArmUnder("model:big", "digest-model:big", "model:big", "default", 3, "p0licy"),
        ),
        models=(
            ModelUsed("own/big", "big", "loop", "1", "2.5"),
            ModelUsed("local/small", "small", "repair", "0", "0", "small-q4_k_m.gguf", "ab" * 32),
        ),
        machine=Machine(2, "A CPU", 8_192, "Linux 6.1 x86_64", "3.11.2", "bubblewrap"),
        limits=Limits(120.0, Micros(2_000_000), 1.5, 2, 1, 300.0),
        seeds={"hashes": "0"},
    )
    return replace(usual, **fields)
