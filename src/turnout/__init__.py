"""Turnout turns a task and a repository into a tested diff.

Importing this package does no work: rooms are imported by their own names.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
