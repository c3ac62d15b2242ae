"""`turnout policy`: which models, which tools, how much, and who changed it."""

from turnout.cli.policy.commands import command

__all__ = ["command"]
