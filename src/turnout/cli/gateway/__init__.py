"""`turnout gateway`: the model endpoint for any agent."""

from turnout.cli.gateway.serve import command

__all__ = ["command"]
