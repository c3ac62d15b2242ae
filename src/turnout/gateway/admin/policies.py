"""`/policies`: revisions read, compared, checked, applied and rolled back."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from turnout.core.clock import Clock
from turnout.core.policies import Policy
from turnout.core.toml import TomlError, read_toml
from turnout.errors import ConfigError, NotFoundError
from turnout.gateway.admin.callers import AdminDep, CallerDep, may_see
from turnout.gateway.admin.errors import REFUSALS
from turnout.gateway.config.policy_file import parse_policies, parse_policy
from turnout.gateway.exchange import Caller
from turnout.gateway.policy.desk import PolicyDesk, Signature
from turnout.gateway.policy.report import ToolReports, report_on
from turnout.gateway.policy.views import (
    CheckOut,
    DiffOut,
    HistoryOut,
    OutcomeOut,
    OutcomesOut,
    PoliciesOut,
    ReportOut,
    RevisionOut,
)

__all__ = ["DraftIn", "PoliciesIn", "PolicyIn", "RollbackIn", "policies_router"]

_MOST = 2**31 - 1
_LONGEST_NOTE = 2_000

_Name = Annotated[str, Path(min_length=1, max_length=64, description="Name of the policy.")]
_Number = Annotated[int, Field(ge=1, le=_MOST)]
_Expected = Annotated[int, Field(ge=0, le=_MOST)]
_Note = Annotated[str, Field(max_length=_LONGEST_NOTE)]
_Table = dict[str, JsonValue]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class PolicyIn(_Body):
    """One policy to become a revision."""

    policy: _Table = Field(description="The policy's table, as a file of policies has it.")
    note: _Note = ""
    expected_revision: _Expected | None = Field(
        None, description="The revision that you have seen, 0 for none: another is a conflict."
    )


class PoliciesIn(_Body):
    """Several policies, applied together or not at all: as tables by name, or as TOML."""

    policies: dict[str, _Table] | None = None
    toml: Annotated[str, Field(max_length=2**20)] | None = None
    note: _Note = ""


class DraftIn(_Body):
    """A policy that is not to be applied."""

    policy: _Table


class RollbackIn(_Body):
    """The revision whose content is to come back."""

    revision: _Number
    note: _Note = ""
    expected_revision: _Expected | None = None


def policies_router(desk: PolicyDesk, reports: ToolReports | None, clock: Clock) -> APIRouter:
    """Return the routes: a key reads its own policies, an admin key reads and changes all."""
    router = APIRouter(prefix="/policies", tags=["policies"], responses=REFUSALS)
    _reading(router, desk)
    _changing(router, desk)
    if reports is not None:
        _reporting(router, desk, reports, clock)
    return router


def _reading(router: APIRouter, desk: PolicyDesk) -> None:
    @router.get("")
    async def list_policies(caller: CallerDep) -> PoliciesOut:
        """List the policies, each at its newest revision; those of a file at revision 0."""
        kept, default = await desk.newest(), await desk.default()
        names = {revision.policy.name for revision in kept}
        filed = [policy for policy in desk.of_file() if policy.name not in names]
        return PoliciesOut.of(
            [r for r in kept if may_see(caller, r.policy.name, default)],
            [policy for policy in filed if may_see(caller, policy.name, default)],
        )

    @router.get("/{name}")
    async def read_policy(
        name: _Name, caller: CallerDep, revision: Annotated[_Number | None, Query()] = None
    ) -> RevisionOut:
        """Read one policy, at its newest revision or another."""
        await _must_see(desk, caller, name)
        if revision is None and await desk.newest_of(name) is None:
            return RevisionOut.of_file(await desk.in_force(name))
        return RevisionOut.of(await desk.get(name, revision))

    @router.get("/{name}/history")
    async def policy_history(
        name: _Name, caller: CallerDep, limit: Annotated[int, Query(ge=1, le=1_000)] = 100
    ) -> HistoryOut:
        """List a policy's revisions, newest first."""
        await _must_see(desk, caller, name)
        return HistoryOut.of(await desk.history(name, limit=limit))

    @router.get("/{name}/diff")
    async def policy_diff(
        name: _Name,
        caller: CallerDep,
        before: Annotated[_Expected | None, Query(alias="from")] = None,
        after: Annotated[_Number | None, Query(alias="to")] = None,
    ) -> DiffOut:
        """Compare two revisions, by default the newest with the one before it."""
        await _must_see(desk, caller, name)
        return DiffOut.of(await desk.diff(name, before, after))


def _changing(router: APIRouter, desk: PolicyDesk) -> None:
    @router.put("/{name}")
    async def put_policy(name: _Name, body: PolicyIn, caller: AdminDep) -> OutcomeOut:
        """Make a policy's new revision, unless it is as the newest."""
        signed = Signature(caller.key, body.note, body.expected_revision)
        (outcome,) = await desk.apply([_named(name, body.policy)], signed)
        return OutcomeOut.of(outcome)

    @router.post("/apply")
    async def apply_policies(body: PoliciesIn, caller: AdminDep) -> OutcomesOut:
        """Make each policy that changed a new revision: all, or none where one is wrong."""
        outcomes = await desk.apply(await _several(body), Signature(caller.key, body.note))
        return OutcomesOut(outcomes=[OutcomeOut.of(outcome) for outcome in outcomes])

    @router.post("/{name}/check")
    async def check_policy(name: _Name, body: DraftIn, caller: CallerDep) -> CheckOut:
        """Say what stands out in a draft, and what it would change; nothing is applied."""
        await _must_see(desk, caller, name)
        draft = _named(name, body.policy)
        return CheckOut.of(desk.check(draft), await desk.compare(draft))

    @router.post("/{name}/rollback")
    async def roll_back_policy(name: _Name, body: RollbackIn, caller: AdminDep) -> OutcomeOut:
        """Make the content of an earlier revision a new revision."""
        signed = Signature(caller.key, body.note, body.expected_revision)
        return OutcomeOut.of(await desk.rollback(name, body.revision, signed))


def _reporting(router: APIRouter, desk: PolicyDesk, reports: ToolReports, clock: Clock) -> None:
    @router.get("/{name}/report")
    async def policy_report(
        name: _Name, caller: CallerDep, days: Annotated[int, Query(ge=1, le=366)] = 30
    ) -> ReportOut:
        """Report the tools outside the policy's list, by key, and whether to enforce it."""
        await _must_see(desk, caller, name)
        return ReportOut.of(await report_on(desk, reports, name, days=days, clock=clock))


async def _must_see(desk: PolicyDesk, caller: Caller, name: str) -> None:
    if not may_see(caller, name, await desk.default()):
        # Whether there is one is not for this key to learn.
        raise NotFoundError(f"There is no policy {name!r} of this key.")


def _named(name: str, table: _Table) -> Policy:
    if table.get("name", name) != name:
        raise ConfigError("`policy.name` is not the name in the path.", mend="Leave it out.")
    return parse_policy({**table, "name": name})


async def _several(body: PoliciesIn) -> tuple[Policy, ...]:
    if (body.policies is None) == (body.toml is None):
        raise ConfigError("Either `policies` or `toml` is needed.", mend="Send one of them.")
    # Beside the loop: others are served meanwhile.
    found = await asyncio.to_thread(_parsed, body)
    if not found:
        raise ConfigError("There is no policy in it.", mend="Write [policies.NAME].")
    return found


def _parsed(body: PoliciesIn) -> tuple[Policy, ...]:
    if body.toml is None:
        return parse_policies({"policies": body.policies})
    try:
        return parse_policies(read_toml(body.toml))
    except TomlError as error:
        raise ConfigError(f"`toml` is not valid TOML: {error}.") from error
