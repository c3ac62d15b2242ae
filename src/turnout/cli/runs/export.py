"""`turnout runs export`: a run as one document."""

import asyncio
from pathlib import Path
from typing import get_args

import click

from turnout.cli.options import config_option, read_settings
from turnout.cli.runs.reading import read_entries
from turnout.cli.runs.remote import server_option
from turnout.errors import UsageError
from turnout.runs.trajectory import TrajectoryFormat
from turnout.runs.trajectory.documents import trajectory_json

__all__ = ["export"]


@click.command("export")
@click.argument("run_id", required=False)
@click.option(
    "--format",
    "wanted",
    type=click.Choice(get_args(TrajectoryFormat)),
    default="atif",
    show_default=True,
    help="atif: the Agent Trajectory Interchange Format; turnout: the record and its result.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write it to a file that is not there yet, instead of printing it.",
)
@server_option
@config_option
def export(
    *,
    run_id: str | None,
    wanted: TrajectoryFormat,
    output: Path | None,
    server: str | None,
    config: Path | None,
) -> int:
    """Print a run as one JSON document, for programs that read how agents work."""
    entries = asyncio.run(read_entries(read_settings(config), run_id, server))
    document = f"{trajectory_json(entries, wanted)}\n"
    if output is None:
        click.echo(document, nl=False)
        return 0
    try:
        with output.open("x", encoding="ascii") as file:
            file.write(document)
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror}.") from error
    return 0
