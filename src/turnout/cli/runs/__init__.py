"""`turnout runs`: what past runs did."""

from turnout.cli.runs.commands import command

__all__ = ["command"]
