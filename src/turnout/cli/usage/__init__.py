"""`turnout usage`: what model calls used, added up."""

from turnout.cli.usage.commands import command

__all__ = ["command"]
