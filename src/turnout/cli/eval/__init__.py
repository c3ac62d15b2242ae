"""`turnout eval`: which model and which policy mend real bugs, measured."""

from turnout.cli.eval.commands import command

__all__ = ["command"]
