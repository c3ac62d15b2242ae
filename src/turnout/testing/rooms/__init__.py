"""Processes behind bubblewrap that stand for containers and machines elsewhere."""
