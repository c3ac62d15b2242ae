"""Policies, what differs between their revisions, and how a tool list fits what is declared."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from turnout.core.govern.revisions import PolicyRevision
from turnout.core.govern.toolwatch import PolicyDay, ToolReport
from turnout.core.policies import Policy, ToolMode
from turnout.gateway.policy.desk import PolicyDiff
from turnout.gateway.policy.diff import FieldChange, value_text
from turnout.gateway.policy.report import PolicyReport
from turnout.web.console.govern.views.charts import Chart, Series, columns_chart
from turnout.web.console.govern.views.restrictions import restrictions
from turnout.web.console.govern.views.words import whole_text

__all__ = [
    "ChangeView",
    "DiffView",
    "PolicyLine",
    "ReportView",
    "RevisionLine",
    "days_chart",
    "diff_view",
    "policy_line",
    "report_view",
    "revision_lines",
]

_BESIDE: Final = {None: "nothing", 0: "the configuration file"}
_MODES: Final[dict[ToolMode, str]] = {
    "any": "any tool",
    "dry_run": "dry run",
    "enforce": "enforced",
}


@dataclass(frozen=True, slots=True)
class PolicyLine:
    """One policy in the list of all."""

    name: str
    revision: int
    """0: it is in the configuration file and was never applied."""
    author: str
    at: datetime | None
    note: str
    objective: str
    mode: ToolMode
    facts: tuple[str, ...]
    """All that it says beside that, a rule each."""
    is_default: bool

    @property
    def mode_said(self) -> str:
        """What the mode of its tool list is called."""
        return _MODES[self.mode]


@dataclass(frozen=True, slots=True)
class RevisionLine:
    """One revision in a history."""

    number: int
    author: str
    at: datetime
    note: str
    restores: int
    """The revision whose content it brought back; 0: it is no rollback."""
    is_newest: bool


@dataclass(frozen=True, slots=True)
class ChangeView:
    """One field that differs: as a list of what came and went, or as a value before and after."""

    field: str
    before: str
    after: str
    added: tuple[str, ...]
    removed: tuple[str, ...]

    @property
    def is_list(self) -> bool:
        """Whether entries came and went."""
        return bool(self.added or self.removed)


@dataclass(frozen=True, slots=True)
class DiffView:
    """What differs between two states of a policy."""

    before: str
    after: str
    changes: tuple[ChangeView, ...]


@dataclass(frozen=True, slots=True)
class ReportView:
    """How a policy's list fits what its keys declare."""

    report: PolicyReport
    days: tuple[PolicyDay, ...]
    """Every day of it; those without requests are there too."""
    quiet_days: int
    may_enforce: bool

    @property
    def tools(self) -> ToolReport:
        """What was seen."""
        return self.report.tools


def policy_line(revision: PolicyRevision | Policy, *, default: str) -> PolicyLine:
    """Return the line of a policy: of its newest revision, or as the configuration file has it."""
    applied = revision if isinstance(revision, PolicyRevision) else None
    policy = revision.policy if isinstance(revision, PolicyRevision) else revision
    return PolicyLine(
        name=policy.name,
        revision=policy.revision if applied else 0,
        author=applied.author if applied else "",
        at=applied.at if applied else None,
        note=applied.note if applied else "",
        objective=policy.objective,
        mode=policy.tools.mode,
        facts=tuple(restrictions(policy)),
        is_default=policy.name == default,
    )


def revision_lines(history: Sequence[PolicyRevision]) -> Sequence[RevisionLine]:
    """Return the lines of a history, newest first as it is."""
    return tuple(
        RevisionLine(
            number=each.policy.revision,
            author=each.author,
            at=each.at,
            note=each.note,
            restores=each.restores or 0,
            is_newest=place == 0,
        )
        for place, each in enumerate(history)
    )


def diff_view(diff: PolicyDiff) -> DiffView:
    """Return what is shown of a comparison."""
    return DiffView(
        before=f"revision {diff.before}" if diff.before else _BESIDE[diff.before],
        after="the draft" if diff.after is None else f"revision {diff.after}",
        changes=tuple(map(_change, diff.changes)),
    )


def report_view(report: PolicyReport) -> ReportView:
    """Return what is shown of a report."""
    seen = report.tools
    return ReportView(
        report=report,
        days=tuple(_every_day(seen)),
        quiet_days=seen.quiet_days,
        may_enforce=report.mode == "dry_run" and seen.may_enforce,
    )


def days_chart(report: ReportView) -> Chart:
    """Return the requests with tools of each day: within the list, and outside of it."""
    series = [
        Series("within", tuple(float(d.requests - d.outside) for d in report.days), "good"),
        Series("outside", tuple(float(d.outside) for d in report.days), "bad"),
    ]
    names = [f"{day.day:%b %d}" for day in report.days]
    return columns_chart("Requests with tools by day", names, series, whole_text, whole=True)


def _change(change: FieldChange) -> ChangeView:
    return ChangeView(
        field=change.field,
        before=value_text(change.before),
        after=value_text(change.after),
        added=change.added,
        removed=change.removed,
    )


def _every_day(seen: ToolReport) -> Iterator[PolicyDay]:
    known = {day.day: day for day in seen.days}
    day = seen.since
    while day <= seen.today:
        yield known.get(day, PolicyDay(day, 0, 0))
        day += timedelta(days=1)
