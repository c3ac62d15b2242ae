"""Joins the pages of the console with what the API works on."""

from dataclasses import dataclass

from starlette.types import ASGIApp

from turnout.core.clock import Clock
from turnout.core.ids import RequestId, SessionId
from turnout.core.receipts import Receipt
from turnout.core.service.orders import OrderedRun
from turnout.gateway.keys.ring import KeyRing
from turnout.settings import Settings
from turnout.store.figures import FiguresStore
from turnout.store.receipts import ReceiptsStore
from turnout.web.console.app import ConsoleParts, build_console
from turnout.web.console.doors import Doorman, Signer
from turnout.web.console.govern.sections import govern_sections
from turnout.web.console.holders import KeyHolders
from turnout.web.console.runs.parts import RunPages
from turnout.web.console.runs.section import runs_section
from turnout.web.console.sessions.ended import EndedSessions
from turnout.web.runs.intake import RunParts
from turnout.wiring.console.desks import Governing
from turnout.wiring.console.governing import govern_parts
from turnout.wiring.console.secret import signing_secret
from turnout.wiring.gateway import Ground, Site
from turnout.wiring.state import state_folder_of

__all__ = ["Console"]


@dataclass(frozen=True, slots=True)
class Console:
    """The pages for people, beside the API of one process."""

    ground: Ground
    site: Site
    ring: KeyRing
    runs: RunParts
    shared: str
    """A key beside those of the store; empty: there is none."""
    private: bool
    """Whether only this machine reaches the service."""
    models: bool = True
    """Whether this process serves models."""

    def app(self, desks: Governing) -> ASGIApp:
        """Return the application of everything from `/console` on."""
        settings, clock = self.ground.settings, self.ground.clock
        governed = govern_parts(
            self.ground, self.site, desks, self.runs.streams, models=self.models
        )
        holders = KeyHolders(self.ring, self.shared, self.private)
        parts = ConsoleParts(
            doorman=Doorman(holders, _signer(settings), clock, _ended(settings, clock)),
            audit=desks.audit,
            sections=(runs_section(self._run_pages()), *govern_sections(governed)),
            keyless=lambda: holders.keyless,
            eager=True,
            clock=clock,
        )
        return build_console(parts)

    def _run_pages(self) -> RunPages:
        database, clock = self.ground.database, self.ground.clock
        receipts, figures = ReceiptsStore(database), FiguresStore(database)

        async def receipt(run: OrderedRun, request_id: RequestId) -> Receipt | None:
            found = await receipts.get(request_id)
            if found is None or found.key != run.order.key:
                return None
            return found if found.session == SessionId(run.run_id) else None

        return RunPages(self.runs, figures.of, receipt, figures.repaired, clock=clock)


def _ended(settings: Settings, clock: Clock) -> EndedSessions:
    return EndedSessions(clock, state_folder_of(settings) / "console.ended")


def _signer(settings: Settings) -> Signer:
    return Signer(signing_secret(state_folder_of(settings)))
