"""What the console consists of: pages that are looked at, and changes that are made from them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from starlette.responses import Response

from turnout.errors import GatewayError
from turnout.gateway.exchange import Caller
from turnout.web.console.visits import Visit

__all__ = ["Access", "Change", "Done", "Page", "Section", "check_access", "may", "role_of"]

Access = Literal["viewer", "member", "approver", "admin"]
"""The least that a key must be; each may do what the ones before it may."""

_ORDER: Final[tuple[Access, ...]] = ("viewer", "member", "approver", "admin")


@dataclass(frozen=True, slots=True)
class Page:
    """A page, or a part of one, that changes nothing."""

    path: str
    """Below `/console`, in Starlette's way: `/runs/{run_id}`."""
    show: Callable[[Visit], Awaitable[Response]]
    access: Access = "viewer"


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a change."""

    answer: Response
    subject: str = ""
    """The run, key or policy that was changed."""
    detail: Mapping[str, str] = field(default_factory=dict)
    """What it was changed to, as far as that is no text of a person."""
    changed: bool = True
    """False where all is as it was, and there is nothing to put on record."""


@dataclass(frozen=True, slots=True)
class Change:
    """Something that a form asks for; it is on record, with its author, before it is answered."""

    path: str
    """As of a page; another one may be there for GET."""
    action: str
    """Its name on record: that of the operation of the API which does the same."""
    make: Callable[[Visit], Awaitable[Done]]
    access: Access


@dataclass(frozen=True, slots=True)
class Section:
    """Pages that belong together, beneath one entry of the menu."""

    title: str
    path: str
    """Of its first page."""
    pages: Sequence[Page]
    changes: Sequence[Change] = ()
    access: Access = "viewer"
    """Who sees it in the menu."""
    listed: bool = True
    """Whether the menu has it."""


def may(caller: Caller, access: Access) -> bool:
    """Whether a key may do what takes `access`."""
    return caller.admin or access in _held(caller)


def role_of(caller: Caller) -> str:
    """Return what the holder of a key is called in the console."""
    if caller.admin:
        return "admin"
    return "viewer" if caller.role == "viewer" else "operator"


def check_access(caller: Caller, access: Access) -> None:
    """Refuse (`GatewayError`, 403) a key that may not do what takes `access`."""
    if may(caller, access):
        return
    held = "an admin key" if access == "admin" else f"a key of the role `{access}`"
    raise GatewayError(
        f"This takes {held}.",
        status=403,
        code="admin_required" if access == "admin" else "role_not_allowed",
        mend="Sign in with such a key, or ask an admin for one.",
    )


def _held(caller: Caller) -> Sequence[Access]:
    if caller.role not in _ORDER:
        return ()
    return _ORDER[: _ORDER.index(caller.role) + 1]
