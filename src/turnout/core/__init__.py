"""Frozen values that rooms hand to each other; no input or output here."""
