"""The commands of `turnout eval`, in the order in which a newcomer needs them."""

import click

from turnout.cli.eval.check import check
from turnout.cli.eval.evidence.apply import apply
from turnout.cli.eval.evidence.checkup import checkup
from turnout.cli.eval.mine import mine
from turnout.cli.eval.regrade import command as regrade
from turnout.cli.eval.results.compare import compare
from turnout.cli.eval.results.export import export
from turnout.cli.eval.results.publish import publish
from turnout.cli.eval.results.report import report
from turnout.cli.eval.running.run import run

__all__ = ["command"]


@click.group("eval")
def command() -> None:
    """Run evaluation tasks and grade their results."""


command.add_command(mine)
command.add_command(check)
command.add_command(run)
command.add_command(report)
command.add_command(compare)
command.add_command(apply)
command.add_command(checkup)
command.add_command(regrade)
command.add_command(export)
command.add_command(publish)
