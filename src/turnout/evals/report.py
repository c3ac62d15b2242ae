"""What an evaluation found, as figures, as text and as JSON."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from turnout.core.json import JsonObject
from turnout.core.money import Micros, format_usd
from turnout.evals.trial import Trial
from turnout.gateway.measure.interval import Interval, wilson

__all__ = ["Report", "report_json", "report_text", "summarise"]


@dataclass(frozen=True, slots=True)
class Report:
    """Figures over the trials of one set."""

    trials: tuple[Trial, ...]
    instances: int
    """Size of the set, trials or not."""
    graded: int
    """Trials whose grade says something about the patch."""
    resolved: int
    interval: Interval
    """Of resolved among graded."""
    median_steps: float
    median_seconds: float
    cost_micros: Micros | None
    """Of all trials; None where a call has no known price."""

    @property
    def rate(self) -> float | None:
        """Resolved among graded; None where nothing was graded."""
        return self.resolved / self.graded if self.graded else None


def summarise(trials: Sequence[Trial], instances: int) -> Report:
    """Return the figures of `trials`, out of a set of `instances`."""
    graded = [trial for trial in trials if trial.grade != "infrastructure"]
    resolved = sum(trial.grade == "resolved" for trial in graded)
    costs = [trial.cost_micros for trial in trials]
    known = [cost for cost in costs if cost is not None]
    return Report(
        tuple(trials),
        instances,
        len(graded),
        resolved,
        wilson(resolved / len(graded) if graded else 0.0, len(graded)),
        float(median([trial.steps for trial in graded])) if graded else 0.0,
        median([trial.seconds for trial in graded]) if graded else 0.0,
        Micros(sum(known)) if len(known) == len(costs) else None,
    )


def report_text(report: Report) -> str:
    """Return the table and the figures below it, for people."""
    rows: list[tuple[str, ...]] = [("instance", "grade", "outcome", "steps", "seconds", "cost")]
    rows += [_row(trial) for trial in report.trials]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join([*lines, "", *_figures(report)])


def report_json(report: Report) -> JsonObject:
    """Return the report as one JSON object."""
    return {
        "instances": report.instances,
        "graded": report.graded,
        "resolved": report.resolved,
        "rate": report.rate,
        "interval_95": [report.interval.low, report.interval.high],
        "median_steps": report.median_steps,
        "median_seconds": report.median_seconds,
        "cost_micros": report.cost_micros,
        "trials": [_trial_json(trial) for trial in report.trials],
    }


def _figures(report: Report) -> list[str]:
    lines = []
    missing = report.instances - len(report.trials)
    ungraded = len(report.trials) - report.graded
    if report.rate is not None:
        lines.append(
            f"resolved {report.resolved} of {report.graded} graded: {report.rate:.0%} "
            f"(95 % interval {report.interval.low:.0%} to {report.interval.high:.0%})"
        )
    if ungraded:
        lines.append(f"{ungraded} could not be graded and are in no rate")
    if missing:
        lines.append(f"{missing} of {report.instances} instances were not run")
    lines.append(
        f"median {report.median_steps:g} steps and {report.median_seconds:.0f} s; "
        f"cost {_cost(report.cost_micros)}"
    )
    return lines


def _row(trial: Trial) -> tuple[str, ...]:
    return (
        trial.instance_id,
        trial.grade,
        trial.outcome or "-",
        str(trial.steps),
        f"{trial.seconds:.0f}",
        _cost(trial.cost_micros),
    )


def _cost(amount: Micros | None) -> str:
    return "unpriced" if amount is None else format_usd(amount)


def _trial_json(trial: Trial) -> JsonObject:
    return {
        "instance_id": trial.instance_id,
        "run_id": trial.run_id,
        "grade": trial.grade,
        "detail": trial.detail,
        "dropped": list(trial.dropped),
        "outcome": trial.outcome,
        "reason": trial.reason,
        "verdict": trial.verdict,
        "steps": trial.steps,
        "model_calls": trial.model_calls,
        "models": list(trial.models),
        "seconds": trial.seconds,
        "cost_micros": trial.cost_micros,
    }
