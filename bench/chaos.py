"""What becomes of runs whose workers, gateway and database go away.

A model counts in a file, one writing step a number, so that what is lost or done twice shows. Every
scenario is played on SQLite and, where that is installed, on a PostgreSQL of our own. A figure is
kept only where everything came to its right end.
"""

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from frame import Options, parse_options, report
from turnout.testing.fleet.postgres import (
    Postgres,
    empty_database,
    postgres_programs,
    running_postgres,
)
from turnout.testing.fleet.scenarios import (
    Ground,
    Outcome,
    Size,
    approval_without_workers,
    database_stopped,
    gateways_killed,
    identical_intakes,
    rolling_restart,
    two_machines,
    workers_killed,
)

Scenario = Callable[[Ground], Awaitable[Outcome]]


def scenarios(options: Options, *, server: bool) -> Mapping[str, Scenario]:
    """Return what is played on a database, by name."""
    pick = options.pick
    killed = Size(pick(20, 3), pick(60, 4), kills=pick(8, 1))
    rolling = Size(pick(10, 3), pick(20, 4), kills=pick(4, 1))
    few = Size(pick(4, 2), pick(20, 3))
    found: dict[str, Scenario] = {
        "intakes": lambda ground: identical_intakes(ground, 50),
        "workers_killed": lambda ground: workers_killed(ground, killed),
        "gateways_killed": lambda ground: gateways_killed(ground, killed),
        "rolling_restart": lambda ground: rolling_restart(ground, rolling),
        "approvals": lambda ground: approval_without_workers(ground, Size(3, pick(3, 1))),
    }
    if server:
        outage = pick(10, 2)
        found["outage"] = lambda ground: database_stopped(ground, few, seconds=outage)
        found["two_machines"] = lambda ground: two_machines(ground, few)
    return found


@contextmanager
def open_folder() -> Iterator[Path]:
    """Make a folder that the users of sandboxes may pass through; it is gone at the end."""
    with tempfile.TemporaryDirectory(prefix="turnout-chaos-") as name:
        Path(name).chmod(0o711)
        yield Path(name)


async def play(
    name: str, found: Mapping[str, Scenario], server: Postgres | None
) -> dict[str, float | int | str | None]:
    """Play all on one database, each in a folder of its own; a fault ends the bench."""
    figures: dict[str, float | int | str | None] = {}
    for what, scenario in found.items():
        with ExitStack() as stack:
            folder, url = stack.enter_context(open_folder()), None
            if server is not None:
                url = stack.enter_context(empty_database(server.url, what))
            outcome = await scenario(Ground(folder / "state", server, url))
        if outcome.faults:
            sys.exit("\n".join([f"{what} on {name}:", *outcome.faults]))
        print(what, "on", name, dict(outcome.figures), flush=True)
        figures |= {f"{name}_{what}_{figure}": value for figure, value in outcome.figures.items()}
    return figures


async def main() -> None:
    """Play both databases, one after the other."""
    options = parse_options(__doc__ or "")
    figures = await play("sqlite", scenarios(options, server=False), None)
    programs = postgres_programs()
    if programs is not None:
        with running_postgres(programs) as server:
            figures |= await play("postgresql", scenarios(options, server=True), server)
    killed = {"runs": options.pick(20, 3), "steps": options.pick(60, 4)}
    report("chaos", options, figures, facts=killed)


if __name__ == "__main__":
    asyncio.run(main())
