"""How an order is taken in, whichever way it comes: checked first, durable then."""

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from turnout.core.ids import RunId
from turnout.core.money import Micros
from turnout.core.service.forges import Origin
from turnout.core.service.orders import Once, Order, OrderedRun, Publish, Submitted
from turnout.core.service.publications import Publication
from turnout.core.service.repositories import RepositoryBook
from turnout.core.tasks import SurfaceName
from turnout.errors import ConflictError, GatewayError, RepositoryError, UsageError
from turnout.gateway.exchange import Caller
from turnout.runs.durable.ports import RunDesk
from turnout.web.runs.callers import Scope
from turnout.web.runs.orders import RunIn, once_of, once_of_retry
from turnout.web.runs.streams import Streams

__all__ = ["RunParts", "conflicts_as", "publish", "take", "take_again"]


async def _take_any(repository: str, base: str) -> None:
    """Leave the base to whoever works on the order."""


def _tell_nobody(run: OrderedRun) -> None:
    """Let it pass."""


def _may_use_any(caller: Caller, policy: str | None, max_spend: Micros | None) -> None:
    """Leave the policies to the gateway."""


def _check_nothing(what: str) -> None:
    """Take it as it is."""


async def _of_none(run_ids: Collection[RunId]) -> Mapping[RunId, Publication]:
    """Know of none."""
    del run_ids
    return {}


@dataclass(frozen=True, slots=True)
class RunParts:
    """What the routes work with."""

    desk: RunDesk
    repositories: RepositoryBook
    streams: Streams = field(default_factory=Streams)
    check_policy: Callable[[Caller, str | None, Micros | None], None] = _may_use_any
    """Raises what the gateway would refuse the policy and the cap on spend of a run with."""
    check_base: Callable[[str, str], Awaitable[None]] = _take_any
    """Raises `RepositoryError` for a base that a repository of the book is known not to have."""
    ordered: Callable[[OrderedRun], None] = _tell_nobody
    """Is told of each new run, and must not wait."""
    surface: SurfaceName = "guide"
    """Where an order names none."""
    check_notify: Callable[[str], None] = _check_nothing
    """Raises `UsageError` for an address that is told of no run."""
    notifies: bool = True
    """Whether any address is told of runs."""
    check_draft: Callable[[str], None] = _check_nothing
    """Raises `UsageError` for a repository that no forge is known to have."""
    publications: Callable[[Collection[RunId]], Awaitable[Mapping[RunId, Publication]]] = _of_none
    """Returns how far those of some runs are, where they have one."""


async def take(
    parts: RunParts, scope: Scope, body: RunIn, key: str | None, origin: Origin | None = None
) -> Submitted:
    """Take an order of a caller: it is durable when this returns.

    The same `key` with the same order stands for the same run; `origin` is who is told of its end
    at a forge. What the caller has got wrong is a `GatewayError` with the field's name.
    """
    once = once_of(key, body)
    if once is not None and origin is not None:
        # A forge's key names the wish itself; what it is about may have moved on meanwhile.
        once = replace(once, digest=once.key)
    earlier = await _made(parts, scope, once)
    if earlier is not None:
        return earlier
    order = replace(body.order(scope, parts.surface), origin=origin)
    await _check(parts, scope.caller, order)
    with conflicts_as("idempotency_conflict"):
        submitted = await parts.desk.submit(order, once)
    if submitted.created:
        parts.ordered(submitted.run)
    return submitted


async def take_again(parts: RunParts, scope: Scope, run_id: RunId, key: str | None) -> Submitted:
    """Take the order of a run that has ended once more, for whoever asks for that.

    It passes the checks of a new order of theirs, and `key` counts as for one.
    """
    once = once_of_retry(key, run_id)
    earlier = await _made(parts, scope, once)
    if earlier is not None:
        return earlier
    run = await parts.desk.get(scope.project, run_id)
    await _check(parts, scope.caller, run.order)
    with conflicts_as("run_not_ended"):
        submitted = await parts.desk.retry(scope.project, run_id, scope.caller.key, once)
    if submitted.created:
        parts.ordered(submitted.run)
    return submitted


async def publish(parts: RunParts, scope: Scope, run_id: RunId, wanted: Publish) -> OrderedRun:
    """Have the diff of a run that has ended published, as an order could have asked for it."""
    run = await parts.desk.get(scope.project, run_id)
    _check_publish(parts, run.order.task.repository, wanted)
    with conflicts_as("cannot_publish"):
        return await parts.desk.publish(scope.project, run_id, wanted)


async def _made(parts: RunParts, scope: Scope, once: Once | None) -> Submitted | None:
    """Return the run of an order that came before, whatever has changed since."""
    if once is None:
        return None
    with conflicts_as("idempotency_conflict"):
        earlier = await parts.desk.made(scope.project, once)
    return None if earlier is None else Submitted(earlier, created=False)


async def _check(parts: RunParts, caller: Caller, order: Order) -> None:
    """Refuse (`GatewayError`) what a caller may not order, or what cannot be."""
    task = order.task
    with _wrong_field("repo"):
        parts.repositories.check(task.repository)
    parts.check_policy(caller, order.policy, order.limits.max_spend)
    if order.notify is not None:
        with _wrong_field("notify"):
            parts.check_notify(order.notify)
    if order.publish is not None:
        _check_publish(parts, task.repository, order.publish)
    with _wrong_field("base"):
        await parts.check_base(task.repository, task.base)
    if task.review is not None and task.review.head:
        with _wrong_field("head"):
            await parts.check_base(task.repository, task.review.head)


def _check_publish(parts: RunParts, repository: str, wanted: Publish) -> None:
    with _wrong_field("publish"):
        parts.repositories.check_push(repository)
        if wanted == "draft":
            parts.check_draft(repository)


@contextmanager
def conflicts_as(code: str) -> Iterator[None]:
    """Answer a conflict with 409 and this code."""
    try:
        yield
    except ConflictError as error:
        raise GatewayError(error.message, status=409, code=code, mend=error.mend) from error


@contextmanager
def _wrong_field(name: str) -> Iterator[None]:
    try:
        yield
    except (RepositoryError, UsageError) as error:
        raise GatewayError(
            error.message, status=400, code="invalid_request", mend=error.mend, param=name
        ) from error
