"""Policies, what differs between them and what became of requests, for people."""

from collections.abc import Iterator, Sequence
from typing import Final

from turnout.cli.terminal import plural, safe
from turnout.core.govern.revisions import PolicyRevision
from turnout.core.policies import Policy
from turnout.core.receipts import Grounds
from turnout.gateway.config.policy_text import toml_text
from turnout.gateway.policy.desk import Outcome, PolicyDiff
from turnout.gateway.policy.diff import FieldChange, value_text
from turnout.gateway.policy.explain import Explained
from turnout.gateway.policy.findings import Finding
from turnout.gateway.policy.report import PolicyReport

__all__ = [
    "check_text",
    "diff_text",
    "explained_text",
    "grounds_text",
    "outcome_text",
    "policy_text",
    "report_text",
    "revision_line",
]

_WIDTH = 24
_UNREVISED: Final = {None: "nothing", 0: "the configuration file"}
_HOUR: Final = 3_600
_DAY: Final = 24 * _HOUR
_FIGURES: Final = {
    "quality": "quality {:.2f}",
    "tool_success": "tool success {:.2f}",
    "latency": "first token {:.0f} ms",
}


def policy_text(policy: Policy, revision: PolicyRevision | None) -> str:
    """Return a policy as a file that `turnout policy apply` takes."""
    if revision is None:
        head = f"# {policy.name}, of the configuration file; it was never applied"
    else:
        head = f"# {policy.name}, {revision_line(revision)}"
    return safe(f"{head.replace(chr(10), ' ')}\n{toml_text([policy])}".rstrip())


def revision_line(revision: PolicyRevision) -> str:
    """Return when a revision was made, by whom and why, on one line."""
    back = f"back to revision {revision.restores}" if revision.restores is not None else ""
    said = "; ".join(part for part in (back, " ".join(revision.note.split())) if part)
    number = revision.policy.revision
    line = f"revision {number}, {revision.at:%Y-%m-%d %H:%M} UTC, by {revision.author}"
    return safe(f"{line}: {said}" if said else line)


def outcome_text(outcome: Outcome) -> str:
    """Return what became of a policy that was applied."""
    revision = outcome.revision
    if not outcome.changed:
        return safe(f"{revision.policy.name}: unchanged, revision {revision.policy.revision}")
    lines = [f"{revision.policy.name}: {revision_line(revision)}", *_changes(outcome.diff.changes)]
    return safe("\n".join(lines))


def diff_text(diff: PolicyDiff) -> str:
    """Return what differs, field by field."""
    before = f"revision {diff.before}" if diff.before else _UNREVISED[diff.before]
    after = "the draft" if diff.after is None else f"revision {diff.after}"
    if not diff.changes:
        return safe(f"{diff.policy}: {before} and {after} say the same")
    return safe("\n".join([f"{diff.policy}: {before} → {after}", *_changes(diff.changes)]))


def check_text(findings: Sequence[Finding], diff: PolicyDiff) -> str:
    """Return what stands out in a draft, and what it would change."""
    lines = [f"  note: {finding.field} {finding.said}" for finding in findings]
    return "\n".join([f"{safe(diff.policy)}: sound", *map(safe, lines), diff_text(diff)])


def report_text(report: PolicyReport) -> str:
    """Return which tools are outside a policy's list, and what to do."""
    seen = report.tools
    lines = [f"{seen.policy}: mode {report.mode}; what was seen since {seen.since}:"]
    lines += [
        f"  {hit.tool:{_WIDTH}} key {hit.key}: {_times(hit.served, hit.refused)}, "
        f"last {hit.last_at:%Y-%m-%d %H:%M} UTC"
        for hit in seen.hits
    ]
    if not seen.hits and report.mode != "any":
        lines.append("  no tool outside the list")
    return safe("\n".join([*lines, f"  {report.suggestion}"]))


def explained_text(explained: Explained) -> str:
    """Return which deployments may serve, best first, and why the others may not."""
    decision = explained.decision
    policy = explained.policy
    under = f"policy {policy.name}, revision {policy.revision}"
    aims = f"objective {decision.objective}; task {decision.task} ({decision.task_source})"
    lines = [decision.reason, f"{under}; {aims}"]
    if explained.outside:
        lines.append(f"outside the policy's list: {', '.join(explained.outside)}")
    for number, candidate in enumerate(decision.candidates, 1):
        place = "  -" if candidate.dropped else f"{number:3}"
        score = "" if candidate.score is None else f"{candidate.score:.4g}  "
        lines.append(
            f"{place}  {candidate.deployment}  {score}{candidate.dropped or candidate.note}"
        )
        lines += [f"       {grounds_text(grounds)}" for grounds in candidate.grounds]
    return safe("\n".join(lines))


def grounds_text(grounds: Grounds) -> str:
    """Return what a figure rests on: its size, its age and who says so."""
    over = "" if grounds.samples is None else f" of {grounds.samples}"
    return (
        f"{_FIGURES[grounds.figure].format(grounds.value)}{over}, "
        f"{_age(grounds.age_seconds)}: {grounds.source}"
    )


def _age(seconds: int | None) -> str:
    if seconds is None:
        return "without a date"
    if seconds >= _DAY:
        return f"{plural(seconds // _DAY, 'day')} old"
    return f"{plural(seconds // _HOUR, 'hour')} old" if seconds >= _HOUR else "less than 1 hour old"


def _changes(changes: Sequence[FieldChange]) -> Iterator[str]:
    for change in changes:
        if change.added or change.removed:
            marks = [f"+ {text}" for text in change.added] + [
                f"- {text}" for text in change.removed
            ]
        else:
            marks = [f"{value_text(change.before)} → {value_text(change.after)}"]
        yield f"  {change.field:{_WIDTH}} {marks[0]}"
        yield from (f"  {'':{_WIDTH}} {mark}" for mark in marks[1:])


def _times(served: int, refused: int) -> str:
    said = [plural(served, "request") + " served"] * (served > 0)
    said += [plural(refused, "request") + " refused"] * (refused > 0)
    return ", ".join(said)
