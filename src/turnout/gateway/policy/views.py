"""Policies as JSON, for programs: the admin routes and the command line show the same."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Self

from pydantic import BaseModel, JsonValue

from turnout.core.govern.revisions import PolicyRevision
from turnout.core.inference import Objective, TaskKind, TaskSource
from turnout.core.json import JsonValue as AnyJson
from turnout.core.policies import Policy, ToolMode
from turnout.core.receipts import Candidate, Decision
from turnout.gateway.config.policy_text import policy_table
from turnout.gateway.policy.desk import Outcome, PolicyDiff
from turnout.gateway.policy.findings import Finding
from turnout.gateway.policy.report import PolicyReport

__all__ = [
    "ChangeOut",
    "CheckOut",
    "DayOut",
    "DiffOut",
    "FindingOut",
    "HistoryOut",
    "HitOut",
    "OutcomeOut",
    "OutcomesOut",
    "PoliciesOut",
    "ReportOut",
    "RevisionOut",
    "RouteOut",
]


def _plain(value: AnyJson) -> JsonValue:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(inner) for inner in value]
    return value


def _table(policy: Policy) -> dict[str, JsonValue]:
    return {key: _plain(value) for key, value in policy_table(policy).items()}


class RevisionOut(BaseModel):
    """One revision of a policy."""

    name: str
    revision: int
    """0: it is in the configuration file and was never applied."""
    author: str | None
    at: datetime | None
    note: str
    restores: int | None
    """The revision whose content it brought back; null where it is no rollback."""
    policy: dict[str, JsonValue]
    """What it says, as a file of policies has it; what is as usual is left out."""

    @classmethod
    def of(cls, revision: PolicyRevision) -> Self:
        """Return the view of a revision of the store."""
        policy = revision.policy
        return cls(
            name=policy.name,
            revision=policy.revision,
            author=revision.author,
            at=revision.at,
            note=revision.note,
            restores=revision.restores,
            policy=_table(policy),
        )

    @classmethod
    def of_file(cls, policy: Policy) -> Self:
        """Return the view of a policy that only the configuration file has."""
        return cls(
            name=policy.name,
            revision=0,
            author=None,
            at=None,
            note="",
            restores=None,
            policy=_table(policy),
        )


class PoliciesOut(BaseModel):
    """Every policy that the caller may see."""

    policies: list[RevisionOut]

    @classmethod
    def of(cls, kept: Sequence[PolicyRevision], own: Sequence[Policy]) -> Self:
        """Return the view of those of the store and of the file."""
        return cls(policies=[*map(RevisionOut.of, kept), *map(RevisionOut.of_file, own)])


class HistoryOut(BaseModel):
    """Revisions of one policy, newest first."""

    revisions: list[RevisionOut]

    @classmethod
    def of(cls, revisions: Sequence[PolicyRevision]) -> Self:
        """Return the view of a history."""
        return cls(revisions=list(map(RevisionOut.of, revisions)))


class ChangeOut(BaseModel):
    """One field that differs."""

    field: str
    before: JsonValue
    after: JsonValue
    added: list[str]
    removed: list[str]


class DiffOut(BaseModel):
    """What differs between two revisions; 0: the configuration file; null: nothing, or a draft."""

    policy: str
    before: int | None
    after: int | None
    changes: list[ChangeOut]

    @classmethod
    def of(cls, diff: PolicyDiff) -> Self:
        """Return the view of a comparison."""
        changes = [
            ChangeOut(
                field=change.field,
                before=_plain(change.before),
                after=_plain(change.after),
                added=list(change.added),
                removed=list(change.removed),
            )
            for change in diff.changes
        ]
        return cls(policy=diff.policy, before=diff.before, after=diff.after, changes=changes)


class OutcomeOut(BaseModel):
    """What became of a policy that was to be applied."""

    changed: bool
    """False where it was as the newest revision, which is then shown."""
    revision: RevisionOut
    diff: DiffOut

    @classmethod
    def of(cls, outcome: Outcome) -> Self:
        """Return the view of an outcome."""
        return cls(
            changed=outcome.changed,
            revision=RevisionOut.of(outcome.revision),
            diff=DiffOut.of(outcome.diff),
        )


class OutcomesOut(BaseModel):
    """What became of several policies."""

    outcomes: list[OutcomeOut]


class FindingOut(BaseModel):
    """Something that is allowed and probably not meant."""

    field: str
    said: str


class CheckOut(BaseModel):
    """What stands out in a draft, and what it would change."""

    findings: list[FindingOut]
    diff: DiffOut

    @classmethod
    def of(cls, findings: Sequence[Finding], diff: PolicyDiff) -> Self:
        """Return the view of a check."""
        found = [FindingOut(field=finding.field, said=finding.said) for finding in findings]
        return cls(findings=found, diff=DiffOut.of(diff))


class HitOut(BaseModel):
    """A tool outside the list, as one key declared it."""

    key: str
    tool: str
    served: int
    refused: int
    first_day: date
    last_at: datetime


class DayOut(BaseModel):
    """One day's requests with tools, and those of them with one outside the list."""

    day: date
    requests: int
    outside: int


class ReportOut(BaseModel):
    """How a policy's list fits what its keys declare."""

    policy: str
    mode: ToolMode
    since: date
    hits: list[HitOut]
    days: list[DayOut]
    quiet_days: int
    may_enforce: bool
    suggestion: str

    @classmethod
    def of(cls, report: PolicyReport) -> Self:
        """Return the view of a report."""
        seen = report.tools
        return cls(
            policy=seen.policy,
            mode=report.mode,
            since=seen.since,
            hits=[
                HitOut(
                    key=hit.key,
                    tool=hit.tool,
                    served=hit.served,
                    refused=hit.refused,
                    first_day=hit.first_day,
                    last_at=hit.last_at,
                )
                for hit in seen.hits
            ],
            days=[DayOut(day=d.day, requests=d.requests, outside=d.outside) for d in seen.days],
            quiet_days=seen.quiet_days,
            may_enforce=report.mode == "dry_run" and seen.may_enforce,
            suggestion=report.suggestion,
        )


class RouteOut(BaseModel):
    """Which deployments may serve a request, best first, and why."""

    deployment: str | None
    """The first choice; null where none may serve."""
    objective: Objective
    task: TaskKind
    task_source: TaskSource
    order: list[str]
    candidates: list[Candidate]
    sticky: bool
    """An open tool call keeps the conversation on its model."""
    caches: bool
    """Whether the first choice caches prompts."""
    policy_revision: int
    reason: str

    @classmethod
    def of(cls, decision: Decision) -> Self:
        """Return the view of a decision."""
        return cls(
            deployment=decision.order[0] if decision.order else None,
            objective=decision.objective,
            task=decision.task,
            task_source=decision.task_source,
            order=list(decision.order),
            candidates=list(decision.candidates),
            sticky=decision.sticky,
            caches=decision.caches,
            policy_revision=decision.policy_revision,
            reason=decision.reason,
        )
