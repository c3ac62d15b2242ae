"""Whose runs a request is about, and what the caller may do with them."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import Depends, Path, Query

from turnout.core.govern.keys import Role
from turnout.core.ids import RunId
from turnout.errors import GatewayError
from turnout.gateway.admin.callers import AgainDep, CallerDep
from turnout.gateway.exchange import Caller

__all__ = ["ApproverDep", "MemberDep", "RunPath", "Scope", "StillDep", "ViewerDep", "member_scope"]

_VIEWERS: Final[frozenset[Role]] = frozenset({"viewer", "member", "approver"})
_MEMBERS: Final[frozenset[Role]] = frozenset({"member", "approver"})
_APPROVERS: Final[frozenset[Role]] = frozenset({"approver"})


@dataclass(frozen=True, slots=True)
class Scope:
    """One caller within one project."""

    caller: Caller
    project: str
    """The caller's own, or the one that an admin has named."""


RunPath = Annotated[
    RunId, Path(pattern=r"^run-[0-9a-f]{12}$", description="Its id, as `POST /runs` returned it.")
]

_ProjectAsk = Annotated[
    str | None,
    Query(max_length=64, description="Another project than the key's own; for admin keys alone."),
]


def _viewer(caller: CallerDep, project: _ProjectAsk = None) -> Scope:
    return _scope(caller, project, _VIEWERS)


def _member(caller: CallerDep, project: _ProjectAsk = None) -> Scope:
    return _scope(caller, project, _MEMBERS)


def _approver(caller: CallerDep, project: _ProjectAsk = None) -> Scope:
    return _scope(caller, project, _APPROVERS)


def member_scope(caller: Caller) -> Scope:
    """Return what a caller orders in; `GatewayError` (403) for one that may not order."""
    return _scope(caller, None, _MEMBERS)


ViewerDep = Annotated[Scope, Depends(_viewer)]
"""Whoever may read the runs of the project."""
MemberDep = Annotated[Scope, Depends(_member)]
"""Whoever may order and stop them."""
ApproverDep = Annotated[Scope, Depends(_approver)]
"""Whoever may decide on calls that wait for a person."""


def _still(again: AgainDep, scope: ViewerDep) -> Callable[[], None]:
    def check() -> None:
        _scope(again(), scope.project, _VIEWERS)

    return check


StillDep = Annotated[Callable[[], None], Depends(_still)]
"""Looks once more whether a viewer is one still; `GatewayError` (401, 403) where not."""


def _scope(caller: Caller, project: str | None, roles: Collection[Role]) -> Scope:
    if not caller.admin and caller.role not in roles:
        raise GatewayError(
            f"A key with the role `{caller.role}` may not do this.",
            status=403,
            code="role_not_allowed",
            mend=f"It takes one of: {', '.join(sorted(roles))}; `turnout keys update NAME --role`.",
        )
    if project is not None and project != caller.project and not caller.admin:
        # The same whether or not there is such a project.
        raise GatewayError(
            "This key is of another project.",
            status=403,
            code="project_not_allowed",
            mend="Leave `project` out.",
            param="project",
        )
    return Scope(caller, caller.project if project is None else project)
