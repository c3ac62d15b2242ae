"""`turnout db`: the database of this machine or service."""

from turnout.cli.db.commands import command

__all__ = ["command"]
