"""Asking one deployment after the other: who is next, how it went, what it shows."""
