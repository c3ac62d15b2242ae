"""`turnout run`: a task and a repository in, a tested diff out."""

from turnout.cli.run.start import command

__all__ = ["command"]
