"""MCP servers, without what may be secret of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal
from urllib.parse import urlsplit

from turnout.core.govern.connections import Connection, ConnectionTool

__all__ = ["CheckedView", "ConnectionView", "connection_views"]


@dataclass(frozen=True, slots=True)
class CheckedView:
    """What a server answered when it was asked for its tools."""

    tools: tuple[ConnectionTool, ...] = ()
    error: str = ""
    """Empty where it answered."""
    mend: str = ""


@dataclass(frozen=True, slots=True)
class ConnectionView:
    """One MCP server."""

    name: str
    where: Literal["gateway", "sandbox"]
    """Who reaches it: the gateway itself, or programs in the sandbox of a run."""
    at: str
    """Its address without what may be a secret, or the program that is started."""
    allow: tuple[str, ...]
    """Empty: every tool."""
    read_only: bool
    timeout: float
    unset: str
    """Variable that is not set, so that nothing is asked of it; empty: none."""
    checked: CheckedView | None


def connection_views(
    of_gateway: Iterable[Connection],
    of_sandboxes: Iterable[Connection],
    checked: Mapping[str, CheckedView],
) -> Sequence[ConnectionView]:
    """Return every connection, those of the gateway first; `checked` is of these, by name."""
    return (
        *(_view(one, "gateway", checked.get(one.name)) for one in of_gateway),
        *(_view(one, "sandbox", None) for one in of_sandboxes),
    )


def _view(
    one: Connection, where: Literal["gateway", "sandbox"], checked: CheckedView | None
) -> ConnectionView:
    return ConnectionView(
        name=one.name,
        where=where,
        at=_address(one.url) if one.url else _program(one.command),
        allow=one.allow,
        read_only=one.read_only,
        timeout=one.timeout,
        unset=one.unset,
        checked=checked,
    )


def _address(url: str) -> str:
    """Return an address without user, password, query and fragment: each may hold a secret."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}{parts.path}"


def _program(command: Sequence[str]) -> str:
    """Return a command without its arguments: each may be a secret."""
    return f"program {PurePath(command[0]).name}" if command else ""
