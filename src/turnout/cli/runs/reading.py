"""The record of a run, of this machine or of a service."""

from collections.abc import Sequence

from turnout.cli.runs.remote import remote_entries
from turnout.core.events import Entry
from turnout.settings import Settings, service_address
from turnout.wiring.state import open_records

__all__ = ["read_entries"]


async def read_entries(
    settings: Settings, run_id: str | None, server: str | None
) -> Sequence[Entry]:
    """Return the record of the one run whose id starts so; None stands for the newest run.

    It is that of a service where `server` or TURNOUT_SERVER names one.
    """
    address = service_address(server)
    if address is not None:
        return await remote_entries(address, run_id)
    async with open_records(settings) as records:
        return list(await records.entries(run_id))
