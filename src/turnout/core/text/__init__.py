"""Text of strangers: which characters of it nobody sees, and how they are shown all the same."""

from turnout.core.text.unseen import is_unseen, seen_only, visible

__all__ = ["is_unseen", "seen_only", "visible"]
