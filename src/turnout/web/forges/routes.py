"""`/forges`: where forges deliver their webhooks."""

import hashlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Annotated, Any, Final

import orjson
from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel

from turnout.core.clock import Clock
from turnout.core.govern.audit import Audited
from turnout.core.json import JsonObject, as_object, ascii_json, read_json
from turnout.core.service.forges import Forge, Origin, Standing
from turnout.core.service.orders import Once, OrderedRun, Publish, Submitted
from turnout.errors import ForgeError, GatewayError, UsageError
from turnout.gateway.admin.errors import REFUSALS
from turnout.gateway.delivery import header_map
from turnout.gateway.exchange import Caller
from turnout.runs.forges.desk import OpenForge
from turnout.runs.forges.hooks.github import read_github
from turnout.runs.forges.hooks.gitlab import read_gitlab
from turnout.runs.forges.hooks.signatures import genuine
from turnout.runs.forges.hooks.triggers import Ignored, Trigger
from turnout.runs.forges.ports import Secrets
from turnout.runs.forges.texts import seen, task_text
from turnout.runs.intake import check_diff
from turnout.web.runs.callers import Scope
from turnout.web.runs.intake import RunParts, take
from turnout.web.runs.orders import RunIn

__all__ = ["ForgeParts", "HookOut", "forges_router"]

_ROLES: Final = frozenset({"member", "approver"})
_RANKS: Final[Mapping[Standing, int]] = {"none": 0, "write": 1, "maintain": 2, "admin": 3}
_LONGEST_TITLE: Final = 200
_DELIVERY: Final[dict[str, Any]] = {
    "security": [],
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"type": "object"}}},
        "description": "A webhook of the forge, signed with the secret that it shares with us.",
    },
}


@dataclass(frozen=True, slots=True)
class ForgeParts:
    """What the route works with."""

    forges: Mapping[str, OpenForge]
    secrets: Secrets
    named: Callable[[str], Caller]
    """Finds the holder of a key; `GatewayError` where it opens nothing."""
    runs: RunParts
    audit: Callable[[Audited], Awaitable[None]]
    """Puts on record who has ordered what."""
    clock: Clock


class HookOut(BaseModel):
    """What came of a webhook."""

    run: str | None
    """The run that it asked for, now or when it came before."""
    ignored: str | None
    """Why it asks for none."""


def forges_router(parts: ForgeParts) -> APIRouter:
    """Return the route; it takes a signature in place of a key."""
    router = APIRouter(prefix="/forges", tags=["runs"], responses=REFUSALS)

    @router.post(
        "/{name}/webhook",
        status_code=201,
        responses={200: {"model": HookOut}},
        openapi_extra=_DELIVERY,
    )
    async def take_webhook(
        name: Annotated[str, Path(max_length=100)], request: Request, response: Response
    ) -> HookOut:
        """Take a webhook of a forge: 201 where it makes a run, 200 where it made it before.

        One that asks for nothing, or comes of somebody who may not ask, is 200 and `ignored`.
        """
        open_ = parts.forges.get(name)
        if open_ is None:
            raise GatewayError(f"There is no forge {name!r}.", status=404, code="not_found")
        headers = header_map(request.scope)
        asked = _read(parts, open_.forge, headers, await request.body())
        if isinstance(asked, Trigger):
            asked = await _checked(open_, asked)
        if isinstance(asked, Ignored):
            response.status_code = 200
            return HookOut(run=None, ignored=asked.why)
        submitted = await _order(parts, open_, asked)
        run = submitted.run
        if submitted.created:
            await parts.audit(_audited(parts, run, asked))
            # Whoever asked sees it; a run is not worth less without.
            with suppress(ForgeError):
                await open_.client.nod(asked.path, asked.thread, asked.number, asked.comment)
        response.status_code = 201 if submitted.created else 200
        response.headers["location"] = f"/v1/runs/{run.run_id}"
        return HookOut(run=run.run_id, ignored=None)

    return router


def _read(
    parts: ForgeParts, forge: Forge, headers: Mapping[str, str], body: bytes
) -> Trigger | Ignored:
    secret = parts.secrets(forge.secret_variable) or ""
    if not genuine(forge.kind, headers, body, secret, parts.clock.now()):
        raise GatewayError(
            "The signature of the webhook is missing or wrong.",
            status=401,
            code="invalid_signature",
            mend="The forge and the service must have the same secret: "
            f"`service.forges.{forge.name}.secret_env`.",
        )
    said = _json(body)
    return read_github(forge, headers, said) if forge.kind == "github" else read_gitlab(forge, said)


def _json(body: bytes) -> JsonObject:
    try:
        return as_object(read_json(body))
    except orjson.JSONDecodeError:
        raise UsageError(
            "The webhook is not JSON.", mend="Let the forge send `application/json`."
        ) from None


async def _checked(open_: OpenForge, asked: Trigger) -> Trigger | Ignored:
    """Return a wish that is to be followed."""
    forge = open_.forge
    if asked.path not in forge.repositories:
        return Ignored(f"{asked.path} is not one of the repositories of {forge.name}.")
    with _as_unavailable():
        standing = await open_.client.standing(asked.path, asked.person)
    if _RANKS[standing] < _RANKS[forge.starters]:
        return Ignored(f"{asked.person.name} may not start runs on {asked.path}.")
    return asked


async def _order(parts: ForgeParts, open_: OpenForge, asked: Trigger) -> Submitted:
    forge = open_.forge
    scope = _scope(parts, forge)
    # The wish by what is signed: the header with the delivery's id is not.
    wish = ascii_json([forge.name, asked.path, asked.occasion]).encode()
    key = f"forge-{hashlib.sha256(wish).hexdigest()}"
    earlier = await parts.runs.desk.made(scope.project, Once(key, key))
    if earlier is not None:
        return Submitted(earlier, created=False)
    body = await _body(parts, open_, asked)
    person, title = asked.person.name, seen(asked.title, _LONGEST_TITLE)
    origin = Origin(forge.name, asked.path, asked.thread, asked.number, person, title)
    return await take(parts.runs, scope, body, key, origin)


def _audited(parts: ForgeParts, run: OrderedRun, asked: Trigger) -> Audited:
    detail = {
        "person": asked.person.name,
        "place": f"{asked.path} {asked.thread} {asked.number}",
        "key": run.order.key,
    }
    forge = "" if run.order.origin is None else run.order.origin.forge
    now = parts.clock.now()
    return Audited(now, f"forge:{forge}", run.order.project, "order_run", run.run_id, detail)


def _scope(parts: ForgeParts, forge: Forge) -> Scope:
    """Return whose run it is to be; `GatewayError` (503) where the forge's key opens nothing."""
    try:
        caller = parts.named(forge.key)
    except GatewayError as error:
        raise _unusable(f"{error.message}", forge) from error
    if not caller.admin and caller.role not in _ROLES:
        raise _unusable(f"A key with the role `{caller.role}` may not order runs.", forge)
    return Scope(caller, caller.project)


def _unusable(why: str, forge: Forge) -> GatewayError:
    return GatewayError(
        why,
        status=503,
        code="forge_key_unusable",
        mend=f"It is named by `service.forges.{forge.name}.key`.",
    )


async def _body(parts: ForgeParts, open_: OpenForge, asked: Trigger) -> RunIn:
    repo = open_.forge.repositories[asked.path]
    labels = [f"forge:{open_.forge.name}", f"{asked.thread}:{asked.number}"]
    task = task_text(asked)
    if asked.work == "fix":
        pushes = parts.runs.repositories.may_push(repo)
        publish: Publish | None = "draft" if pushes else None
        return RunIn(task=task, repo=repo, labels=labels, publish=publish)
    with _as_unavailable():
        change = await open_.client.change(asked.path, asked.number)
    try:
        diff = change.diff.decode()
    except UnicodeDecodeError:
        raise UsageError("The change cannot be reviewed: not all of it is UTF-8.") from None
    try:
        check_diff(change.diff)
    except UsageError as error:
        raise UsageError(f"The change cannot be reviewed. {error.message}") from error
    return RunIn(kind="review", task=task, repo=repo, base=change.base, diff=diff, labels=labels)


@contextmanager
def _as_unavailable() -> Iterator[None]:
    """Let the forge deliver again later what cannot be looked into now."""
    try:
        yield
    except ForgeError as error:
        raise GatewayError(
            error.message, status=503, code="forge_unavailable", mend=error.mend
        ) from error
