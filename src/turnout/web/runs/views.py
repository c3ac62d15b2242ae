"""Runs as the API shows them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import BaseModel, Field

from turnout.core.events import ApprovalAsked, Entry, encode_event
from turnout.core.ids import RunId
from turnout.core.json import JsonObject, ascii_json
from turnout.core.runs import Outcome, RunState, VerdictName
from turnout.core.service.forges import Origin, ThreadKind
from turnout.core.service.orders import OrderedRun, Publish, RunPage
from turnout.core.service.publications import Publication, PublicationState
from turnout.core.tasks import RunKind, SurfaceName
from turnout.runs.export import result_object
from turnout.runs.summary import fold

__all__ = [
    "EntryOut",
    "LimitsOut",
    "OriginOut",
    "PublicationOut",
    "RecordOut",
    "RunDetail",
    "RunOut",
    "RunsOut",
    "WaitOut",
    "entry_json",
    "record_json",
]

_LARGE: Final = frozenset({"connections", "diff", "model_calls", "tool_calls"})
"""Parts of a result that have routes of their own, or are the record again."""


class LimitsOut(BaseModel):
    """What the run may take; null: what the service allows."""

    max_steps: int | None
    max_seconds: float | None
    max_spend_micros: int | None


class WaitOut(BaseModel):
    """A tool call that a person is to decide on."""

    call_id: str
    step: int
    tool: str
    arguments: str
    """As the model wrote them."""
    rule: str
    """Why it waits."""

    @classmethod
    def of(cls, asked: ApprovalAsked) -> "WaitOut":
        """Return what is shown of a call that waits."""
        call = asked.call
        return cls(
            call_id=call.id,
            step=asked.step,
            tool=call.name,
            arguments=call.arguments,
            rule=asked.rule,
        )


class OriginOut(BaseModel):
    """Where at a forge a run was asked for."""

    forge: str
    repository: str
    """Its path there."""
    thread: ThreadKind
    number: int
    asked_by: str

    @classmethod
    def of(cls, origin: Origin) -> "OriginOut":
        """Return what is shown of it."""
        return cls(
            forge=origin.forge,
            repository=origin.path,
            thread=origin.thread,
            number=origin.number,
            asked_by=origin.asked_by,
        )


class RunOut(BaseModel):
    """A run, and where it stands."""

    id: str
    kind: RunKind
    state: RunState
    outcome: Outcome | None
    """Why it ended; null before."""
    verdict: VerdictName | None
    """What our own test runs say of its diff."""
    task: str
    repo: str
    base: str
    surface: SurfaceName
    policy: str | None
    test_command: str | None
    project: str
    key: str
    """Name of the key that ordered it, and that its model calls are charged to."""
    priority: int
    labels: Sequence[str]
    limits: LimitsOut
    notify: str | None
    """Where the address is that is told of it, without its path: that may be a secret."""
    publish: Publish | None
    retry_of: str | None
    origin: OriginOut | None
    """Null where it came in another way than from a forge."""
    ordered_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    cancel_asked: bool
    waits_for: WaitOut | None
    segments: int
    """How often a worker has begun or continued it."""

    @classmethod
    def of(cls, run: OrderedRun) -> "RunOut":
        """Return what is shown of a run."""
        order, limits = run.order, run.order.limits
        return cls(
            id=run.run_id,
            kind=order.task.kind,
            state=run.state,
            outcome=run.outcome,
            verdict=run.verdict,
            task=order.task.prompt,
            repo=order.task.repository,
            base=order.task.base,
            surface=order.task.surface,
            policy=order.policy,
            test_command=order.task.test_command,
            project=order.project,
            key=order.key,
            priority=order.priority,
            labels=order.labels,
            limits=LimitsOut(
                max_steps=limits.max_steps,
                max_seconds=limits.max_seconds,
                max_spend_micros=limits.max_spend,
            ),
            notify=None if order.notify is None else _origin(order.notify),
            publish=order.publishes,
            retry_of=order.retry_of,
            origin=None if order.origin is None else OriginOut.of(order.origin),
            ordered_at=run.ordered_at,
            started_at=run.started_at,
            ended_at=run.ended_at,
            cancel_asked=run.cancel_asked,
            waits_for=None if run.waits_for is None else WaitOut.of(run.waits_for),
            segments=run.epoch,
        )


class PublicationOut(BaseModel):
    """What becomes of a run's diff outside of the service, once it has ended."""

    state: PublicationState
    branch: str | None
    """Null until it was pushed, with one commit."""
    commit: str | None
    link: str | None
    """Of the draft of a pull or merge request; null where there is none."""
    detail: str
    """Why it did not work, or why nothing was pushed; empty where all is well."""
    tries: int
    """That came to nothing, one after the other."""
    next_try: datetime | None
    """Null where there is none."""

    @classmethod
    def of(cls, publication: Publication) -> "PublicationOut":
        """Return what is shown of one."""
        return cls(
            state=publication.state,
            branch=publication.branch or None,
            commit=publication.commit or None,
            link=publication.link or None,
            detail=publication.detail,
            tries=publication.tries,
            next_try=publication.due_at if publication.tries and not publication.over else None,
        )


class RunDetail(RunOut):
    """A run, and what its record amounts to so far."""

    publication: PublicationOut | None
    """Null where nothing is to be published."""

    result: Mapping[str, Any] | None = Field(
        description="The object of `turnout run --json` without its diff, calls and connections; "
        "null while nobody has begun it."
    )

    @classmethod
    def with_record(
        cls, run: OrderedRun, entries: Sequence[Entry], publication: Publication | None
    ) -> "RunDetail":
        """Return what is shown of a run and its record."""
        shown = RunOut.of(run).model_dump()
        published = None if publication is None else PublicationOut.of(publication)
        result = _result(entries) if entries else None
        return cls(**shown, publication=published, result=result)


class RunsOut(BaseModel):
    """Some runs, newest first."""

    runs: Sequence[RunOut]
    next_cursor: int | None
    """To be sent as `cursor` for those that follow; null where none do."""

    @classmethod
    def of(cls, page: RunPage) -> "RunsOut":
        """Return what is shown of a page."""
        return cls(runs=[RunOut.of(run) for run in page.runs], next_cursor=page.before)


class EntryOut(BaseModel):
    """An event at its place in the record."""

    seq: int
    at: datetime
    event: Mapping[str, Any]
    """With its `type`, such as `tool_call_done`."""


class RecordOut(BaseModel):
    """A part of a run's record, in order."""

    run_id: str
    entries: Sequence[EntryOut]
    next_after: int | None
    """To be sent as `after` for what follows; null where nothing does, as yet."""


def entry_json(entry: Entry) -> str:
    """Return an entry as one line of JSON, of the fields of `EntryOut`."""
    event = encode_event(entry.event)
    return f'{{"seq":{entry.seq},"at":"{entry.at.isoformat()}","event":{event}}}'


def record_json(run_id: RunId, entries: Sequence[Entry], *, limit: int) -> str:
    """Return the first `limit` of these entries as JSON, of the fields of `RecordOut`."""
    shown = entries[:limit]
    after = shown[-1].seq if len(entries) > limit else None
    listed = ",".join(map(entry_json, shown))
    head = f'{{"run_id":{ascii_json(run_id)},"entries":['
    return f'{head}{listed}],"next_after":{ascii_json(after)}}}'


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _result(entries: Sequence[Entry]) -> JsonObject:
    whole = result_object(fold(entries))
    return {name: value for name, value in whole.items() if name not in _LARGE}
