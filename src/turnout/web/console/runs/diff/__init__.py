"""The diff of a run on a page."""
