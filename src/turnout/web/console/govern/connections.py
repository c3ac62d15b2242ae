"""MCP servers: what is set up, and whether it answers."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from turnout.errors import ConnectionFailedError, NotFoundError
from turnout.web.console.govern.parts import ConnectionsKnown
from turnout.web.console.govern.views.connections import (
    CheckedView,
    ConnectionView,
    connection_views,
)
from turnout.web.console.sections import Change, Done, Page, Section
from turnout.web.console.visits import Visit

__all__ = [
    "ConnectionsView",
    "connections_section",
]

_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class ConnectionsView:
    """All of them."""

    connections: Sequence[ConnectionView]


def connections_section(known: ConnectionsKnown) -> Section:
    """Return the pages; asking a server for its tools may start its program: for members."""
    pages = _Pages(known)
    return Section(
        "Connections",
        "/connections",
        pages=(Page("/connections", pages.all),),
        changes=(Change("/connections", "check_connection", pages.check, "member"),),
    )


class _Pages:
    def __init__(self, known: ConnectionsKnown) -> None:
        self._known = known

    async def all(self, visit: Visit) -> Response:
        """List what is set up; nobody is asked."""
        return visit.page("govern/connections.html", self._view({}))

    async def check(self, visit: Visit) -> Done:
        """Ask one server for its tools; none of them is run."""
        name = visit.form.text("name")
        if name not in self._known.of_gateway:
            raise NotFoundError(f"There is no connection {name[:200]!r}.")
        try:
            async with asyncio.timeout(_SECONDS):
                checked = CheckedView(await self._known.tools(name))
        except ConnectionFailedError as error:
            checked = CheckedView(error=error.message, mend=error.mend)
        except TimeoutError:
            checked = CheckedView(error=f"{name} did not answer within {_SECONDS:.0f} s.")
        page = visit.page("govern/connections.html", self._view({name: checked}))
        return Done(page, name, changed=False)

    def _view(self, checked: dict[str, CheckedView]) -> ConnectionsView:
        known = self._known
        return ConnectionsView(
            connection_views(known.of_gateway.values(), known.of_sandboxes, checked)
        )
