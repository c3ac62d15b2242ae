"""Turnout turns a task and a repository into a tested diff.

Importing this package does no work: rooms are imported by their own names, and `Sandbox` and
`AsyncSandbox`, for programs that want the sandbox alone, at their first use.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from turnout.sdk import AsyncSandbox, Sandbox

__all__ = ["AsyncSandbox", "Sandbox", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name in {"AsyncSandbox", "Sandbox"}:
        return getattr(importlib.import_module("turnout.sdk"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
