"""`turnout models`: the local models, and what models can do."""

import click

from turnout.cli.models.evidence import evidence
from turnout.cli.models.local import list_models, pull, serve
from turnout.cli.models.probe import probe

__all__ = ["command"]


@click.group(
    "models",
    epilog="\b\nExamples:\n"
    "  turnout models pull\n"
    "  turnout models serve --threads 2\n"
    "  turnout models probe\n"
    "  turnout models evidence\n\n"
    "\b\nExit codes:\n"
    "  0  done\n"
    "  1  some deployment could not be probed\n"
    "  2  wrong usage, or no such model\n"
    "  4  the model cannot be had, served or asked here",
)
def command() -> None:
    """Fetch, serve and list the local models; find out what any model can do.

    `turnout run` uses the local model by itself where no endpoint is configured.
    """


command.add_command(pull)
command.add_command(list_models)
command.add_command(serve)
command.add_command(probe)
command.add_command(evidence)
