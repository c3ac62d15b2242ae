"""The tables of a report, as rows of words; each form of a report draws them its own way."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Final

from turnout.evals.report.model import Arm, ArmResult, Comparison, Group, InstanceResults, Section
from turnout.evals.report.words import (
    p_words,
    percent,
    points,
    range_words,
    ratio_words,
    seconds_words,
    usd,
)
from turnout.evals.trials.model import Trial

__all__ = ["Table", "arm_table", "detail_tables", "task_grade", "usd_column"]

_NONE: Final = nan


@dataclass(frozen=True, slots=True)
class Table:
    """A title, the heads of the columns, and rows of as many cells."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1
    """Columns of words, which come first; the rest hold figures."""
    note: str = ""
    """How to read it."""


def arm_table(section: Section) -> Table:
    """Return the table that everybody reads first."""
    return Table(
        "Arms",
        (
            "arm",
            "resolved",
            "rate",
            "95 % interval",
            "of all",
            "steps",
            "time",
            "cost per task",
            "median",
            "per resolved",
            "all spend",
        ),
        _arm_rows(section.arms),
        note="Rates are over graded tasks, “of all” over all trials. Steps and time are medians; "
        "cost per resolved is all spend over trials resolved.",
    )


def _arm_rows(arms: Sequence[Arm]) -> tuple[tuple[str, ...], ...]:
    amounts = zip(
        usd_column([arm.cost_per_task if arm.graded else _NONE for arm in arms]),
        usd_column([arm.median_cost if arm.graded else _NONE for arm in arms]),
        usd_column([arm.cost_per_resolved if arm.resolved else _NONE for arm in arms]),
        usd_column([arm.cost_micros for arm in arms]),
        strict=True,
    )
    return tuple(
        (
            arm.name,
            f"{arm.resolved} of {arm.graded}",
            percent(arm.share.rate),
            range_words(arm.share),
            percent(arm.rate_of_all),
            f"{arm.median_steps:g}",
            seconds_words(arm.median_seconds),
            *costs,
        )
        for arm, costs in zip(arms, amounts, strict=True)
    )


def usd_column(amounts: Sequence[float | None]) -> list[str]:
    """Return amounts in micro-USD to the same digit, as many as the one that needs most.

    None is a price that is unknown, and what is no number nothing that could have one.
    """
    told = [usd(each) for each in amounts if each is not None and not isnan(each)]
    digits = max((len(each.partition(".")[2]) for each in told), default=2)
    return [
        usd(None) if each is None else "-" if isnan(each) else f"${each / 1e6:,.{digits}f}"
        for each in amounts
    ]


def detail_tables(section: Section) -> tuple[Table, ...]:
    """Return all other tables that have a row, in the order in which questions come."""
    tables = (
        _comparison_table(section.comparisons),
        _ratio_table(section.comparisons),
        _group_table("By difficulty", "code lines", {a.name: a.difficulties for a in section.arms}),
        _group_table("By repository", "repository", {a.name: a.repositories for a in section.arms}),
        _kind_table(section.arms),
        _model_table(section.arms),
        _call_table(section.arms),
        _ending_table(section.arms),
        _apart_table(section),
        _flag_table(section.tasks),
        Table(
            "Tasks in no rate",
            ("instance", "reason"),
            tuple((each.instance_id, each.reason) for each in section.unfit),
            left=2,
        ),
    )
    return tuple(table for table in tables if table.rows)


def _comparison_table(comparisons: Sequence[Comparison]) -> Table:
    return Table(
        "Paired on the same tasks",
        (
            "arms",
            "tasks",
            "both",
            "only first",
            "only second",
            "neither",
            "points",
            "95 % interval",
            "p",
            "mid-p",
            "interval after all",
            "p after all",
            "least gap",
        ),
        tuple(
            (
                f"{each.arm} against {each.reference}",
                str(each.tasks),
                str(each.both),
                str(each.only_arm),
                str(each.only_reference),
                str(each.neither),
                points(each.difference),
                f"{points(each.bounds.low)} to {points(each.bounds.high)}",
                p_words(each.p),
                p_words(each.mid_p),
                f"{points(each.adjusted_bounds.low)} to {points(each.adjusted_bounds.high)}",
                p_words(each.adjusted_p),
                "none" if each.smallest is None else f"{100 * each.smallest:.0f}",
            )
            for each in comparisons
        ),
        note="Exact McNemar test; interval by drawing tasks again, whole repositories where there "
        "are eight or more, and never narrower than the test's own. After all: made stricter for "
        "so many comparisons (Holm). Least gap: points that so many tasks show four times in five.",
    )


def _ratio_table(comparisons: Sequence[Comparison]) -> Table:
    return Table(
        "Cost, steps and time as ratios of totals",
        ("arms", "cost per task", "cost per resolved", "steps", "time"),
        tuple(
            (
                f"{each.arm} to {each.reference}",
                ratio_words(each.cost),
                ratio_words(each.cost_per_resolved),
                ratio_words(each.steps),
                ratio_words(each.seconds),
            )
            for each in comparisons
        ),
        note="Below 1 the first needs less. On the tasks that both have a grade for, with 95 % "
        "intervals.",
    )


def _group_table(title: str, head: str, groups: Mapping[str, Sequence[Group]]) -> Table:
    """Return the rates of every group under every arm, in the order of the arm that has most."""
    most = max(groups.values(), key=len, default=())
    names = dict.fromkeys(group.name for each in (most, *groups.values()) for group in each)
    rows = tuple((name, *(_group_cell(name, each) for each in groups.values())) for name in names)
    return Table(title, (head, *groups), rows)


def _group_cell(name: str, groups: Sequence[Group]) -> str:
    share = next((group.share for group in groups if group.name == name), None)
    if share is None or share.rate is None:
        return "-"
    return f"{percent(share.rate)} of {share.tasks} ({range_words(share)})"


def _kind_table(arms: Sequence[Arm]) -> Table:
    return Table(
        "Model calls by kind",
        ("arm", "kind", "calls", "tokens in", "cached", "tokens out", "cost", "of cost", "waited"),
        tuple(
            (
                arm.name,
                kind.kind,
                f"{kind.calls:,}",
                f"{kind.input_tokens:,}",
                f"{kind.cache_read_input_tokens:,}",
                f"{kind.output_tokens:,}",
                usd(kind.cost_micros),
                _part(kind.cost_micros, arm),
                seconds_words(kind.seconds),
            )
            for arm in arms
            for kind in arm.kinds
        ),
        left=2,
    )


def _part(cost: int | None, arm: Arm) -> str:
    costs = [kind.cost_micros for kind in arm.kinds]
    known = [each for each in costs if each is not None]
    whole = sum(known) if len(known) == len(costs) else 0
    return percent(cost / whole) if cost is not None and whole else "-"


def _model_table(arms: Sequence[Arm]) -> Table:
    return Table(
        "Which model took which calls",
        ("arm", "kind", "model", "calls", "of kind", "cost"),
        tuple(
            (
                arm.name,
                kind.kind,
                share.model,
                f"{share.calls:,}",
                percent(share.calls / kind.calls) if kind.calls else "-",
                usd(share.cost_micros),
            )
            for arm in arms
            for kind in arm.kinds
            for share in kind.models
        ),
        left=3,
    )


def _call_table(arms: Sequence[Arm]) -> Table:
    return Table(
        "Tool calls",
        (
            "arm",
            "tool calls",
            "ended without an error",
            "calls repaired",
            "answers asked for again",
            "overhead",
        ),
        tuple(
            (
                arm.name,
                f"{arm.tool_calls:,}",
                percent(1 - arm.tool_failures / arm.tool_calls) if arm.tool_calls else "-",
                f"{arm.repairs:,}",
                f"{arm.nudges:,}",
                seconds_words(arm.overhead_seconds),
            )
            for arm in arms
        ),
        note="A call ends with an error where the tool could not do what was asked, such as edit a "
        "text that is not there; a command that ran is none, whatever its exit status. How many "
        "calls were well-formed, which `min_tool_success` of a policy asks for, is another figure: "
        "`turnout models evidence`. Overhead: median time of the harness beside run and grading.",
    )


def _ending_table(arms: Sequence[Arm]) -> Table:
    return Table(
        "How trials ended",
        ("arm", "grades", "runs"),
        tuple(
            (
                arm.name,
                ", ".join(f"{each.name} {each.trials}" for each in arm.grades),
                ", ".join(f"{each.name} {each.trials}" for each in arm.outcomes),
            )
            for arm in arms
        ),
        left=3,
    )


def _apart_table(section: Section) -> Table:
    apart = {name for each in section.comparisons for name in each.discordant}
    return Table(
        "Tasks that came out differently",
        ("instance", *(arm.name for arm in section.arms)),
        tuple(
            (task.instance_id, *(task_grade(task.of(arm.name)) for arm in section.arms))
            for task in section.tasks
            if task.instance_id in apart
        ),
        left=1 + len(section.arms),
    )


def task_grade(result: ArmResult | None) -> str:
    """Return the grade of one try, or how many of several tries resolved the task."""
    if result is None:
        return "-"
    if len(result.trials) == 1:
        return result.trials[0].grade
    return f"resolved {result.resolved} of {result.tries}"


def _flag_table(tasks: Sequence[InstanceResults]) -> Table:
    return Table(
        "Patches to look at",
        ("instance", "arm", "what"),
        tuple(_flags(tasks)),
        left=3,
        note="Changes to tests, and to what controls them, were left out before grading, or failed "
        "the trial where grading is strict. The rest is no part of any grade.",
    )


def _flags(tasks: Sequence[InstanceResults]) -> Iterator[tuple[str, ...]]:
    for task in tasks:
        for result in task.results:
            for trial in result.trials:
                for sentence in dict.fromkeys(_said(trial)):
                    yield task.instance_id, result.arm, sentence


def _said(trial: Trial) -> Iterator[str]:
    if trial.canary_failed is False or trial.bent_failed is False:
        yield "made tests pass that were bound to fail"
    yield from (f"changed {path}" for path in trial.dropped)
    yield from trial.smells
