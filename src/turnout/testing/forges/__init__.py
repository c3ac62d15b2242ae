"""A forge to test with: its API, and its webhooks."""

from turnout.testing.forges.hooks import Delivery, comment, labelled, signed
from turnout.testing.forges.server import Account, ScriptedForge, running_forge

__all__ = [
    "Account",
    "Delivery",
    "ScriptedForge",
    "comment",
    "labelled",
    "running_forge",
    "signed",
]
