"""What happened at the gateway and to runs that somebody may want to be told of."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Literal

from pydantic import TypeAdapter

from turnout.core.events import ApprovalAsked, Event, ReviewDecision, Reviewed
from turnout.core.ids import DeploymentId, RequestId, SessionId
from turnout.core.json import ascii_json
from turnout.core.receipts import Receipt
from turnout.core.runs import Outcome, VerdictName
from turnout.core.service.orders import OrderedRun
from turnout.core.service.publications import Publication

__all__ = [
    "Happening",
    "HappeningKind",
    "decision_of",
    "decode_happening",
    "deployment_unhealthy",
    "encode_happening",
    "policy_changed",
    "run_ended",
    "run_published",
    "run_started",
    "run_waiting",
    "session_capped",
    "tool_first_seen",
    "tool_outside_list",
    "tool_refused",
]

HappeningKind = Literal[
    "tool.first_seen",
    "tool.outside_list",
    "tool.refused",
    "session.capped",
    "deployment.unhealthy",
    "policy.changed",
    "run.started",
    "run.waiting",
    "run.ended",
    "run.published",
    "run.not_published",
]


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that happened, once, whoever and however many noticed it."""

    id: str
    """A digest of what makes it one: the same tool, key, policy and day give the same."""
    at: datetime
    kind: HappeningKind
    subject: str
    """The tool, session, deployment, policy or run that it is about."""
    text: str
    """One sentence for people."""
    project: str = ""
    """Empty where it is about everybody's."""
    key: str = ""
    """Name of the key; empty where it is about no one's."""
    policy: str = ""
    session: SessionId | None = None
    request_id: RequestId | None = None
    """The request that showed it first."""
    outcome: Outcome | None = None
    """Of a run, once it has ended."""
    verdict: VerdictName | None = None


def tool_first_seen(receipt: Receipt, tool: str) -> Happening:
    """Say that a project has sent a tool for the first time."""
    text = f"Project {receipt.project} declared the tool {tool} for the first time."
    return _of(receipt, "tool.first_seen", tool, text, receipt.project)


def tool_outside_list(receipt: Receipt, tool: str) -> Happening:
    """Say that a tool outside a dry-run list was served: told once a day for each key."""
    text = f"Key {receipt.key} declared {tool}, which policy {receipt.policy} does not list."
    return _of(receipt, "tool.outside_list", tool, text, *_daily(receipt))


def tool_refused(receipt: Receipt, tool: str) -> Happening:
    """Say that a request was refused for a tool: told once a day for each key."""
    text = f"Key {receipt.key} was refused {tool}: policy {receipt.policy} does not allow it."
    return _of(receipt, "tool.refused", tool, text, *_daily(receipt))


def session_capped(receipt: Receipt) -> Happening:
    """Say that a session has reached a cap: told once for each of its caps."""
    cap = receipt.error_code or ""
    what = "requests" if "request" in cap else "spend"
    name = receipt.session or receipt.request_id
    text = f"Session {name} of key {receipt.key} has reached its cap on {what}."
    return _of(receipt, "session.capped", name, text, receipt.key, cap)


def deployment_unhealthy(at: datetime, deployment: DeploymentId, why: str) -> Happening:
    """Say that a deployment is left out for a while: told once a minute."""
    return Happening(
        id=_digest("deployment.unhealthy", deployment, f"{at:%Y-%m-%dT%H:%M}"),
        at=at,
        kind="deployment.unhealthy",
        subject=deployment,
        text=f"{deployment} is left out for a while: {why}.",
    )


def policy_changed(
    at: datetime, policy: str, revision: int, *, author: str, note: str
) -> Happening:
    """Say that a policy has a new revision."""
    said = f": {note}" if note else "."
    return Happening(
        id=_digest("policy.changed", policy, str(revision)),
        at=at,
        kind="policy.changed",
        subject=policy,
        text=f"Policy {policy} is at revision {revision}, by {author}{said}",
        policy=policy,
    )


def run_started(at: datetime, run: OrderedRun) -> Happening:
    """Say that a worker has begun a run: told once, however often it is continued."""
    text = f"Run {run.run_id} of project {run.order.project} has begun."
    return _of_run(at, run, "run.started", text)


def run_waiting(at: datetime, run: OrderedRun, asked: ApprovalAsked) -> Happening:
    """Say that a run waits for a person: told once for each call."""
    text = f"Run {run.run_id} of project {run.order.project} waits: may it call {asked.call.name}?"
    return _of_run(at, run, "run.waiting", text, asked.call.id)


def decision_of(events: Iterable[Event]) -> ReviewDecision | None:
    """Return what the last review among events has come to; None without one."""
    reviews = [event for event in events if isinstance(event, Reviewed)]
    return reviews[-1].decision if reviews else None


def run_ended(at: datetime, run: OrderedRun, decision: ReviewDecision | None = None) -> Happening:
    """Say that a run has ended, and how; a review with its decision."""
    said = f"decision {decision}" if decision else run.verdict
    how = ", ".join(filter(None, (run.outcome, said)))
    text = f"Run {run.run_id} of project {run.order.project} has ended: {how}."
    return _of_run(at, run, "run.ended", text)


def run_published(at: datetime, run: OrderedRun, publication: Publication) -> Happening:
    """Say what has become of a run's diff outside of the service, once nothing more will."""
    name = f"Run {run.run_id} of project {run.order.project}"
    if publication.state == "failed" or not publication.branch:
        text = f"{name} was not published: {publication.detail}"
        return _of_run(at, run, "run.not_published", text)
    where = f", and drafted as {publication.link}" if publication.link else ""
    text = f"{name} was pushed as branch {publication.branch}{where}."
    return _of_run(at, run, "run.published", text)


def _of_run(
    at: datetime, run: OrderedRun, kind: HappeningKind, text: str, *what_else: str
) -> Happening:
    return Happening(
        id=_digest(kind, run.run_id, *what_else),
        at=at,
        kind=kind,
        subject=run.run_id,
        text=text,
        project=run.order.project,
        key=run.order.key,
        policy=run.order.policy or "",
        session=SessionId(run.run_id),
        outcome=run.outcome,
        verdict=run.verdict,
    )


def _of(
    receipt: Receipt, kind: HappeningKind, subject: str, text: str, *what_else: str
) -> Happening:
    return Happening(
        id=_digest(kind, subject, *what_else),
        at=receipt.at,
        kind=kind,
        subject=subject,
        text=text,
        project=receipt.project,
        key=receipt.key,
        policy=receipt.policy,
        session=receipt.session,
        request_id=receipt.request_id,
    )


def _daily(receipt: Receipt) -> tuple[str, str, str]:
    return receipt.key, receipt.policy, f"{receipt.at:%Y-%m-%d}"


def _digest(*parts: str) -> str:
    # As JSON, so that no part runs into the next, whatever it holds.
    return f"evt-{hashlib.sha256(ascii_json(parts).encode()).hexdigest()[:24]}"


@cache
def _adapter() -> TypeAdapter[Happening]:
    return TypeAdapter(Happening)


def encode_happening(happening: Happening) -> str:
    """Return `happening` as one JSON object in ASCII."""
    return ascii_json(_adapter().dump_python(happening, mode="json"))


def decode_happening(text: str | bytes) -> Happening:
    """Return the happening that `encode_happening` wrote; ValueError where it is none."""
    return _adapter().validate_python(json.loads(text))
