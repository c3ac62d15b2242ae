"""`turnout keys`: who may call the gateway, and what for."""

from turnout.cli.keys.commands import command

__all__ = ["command"]
