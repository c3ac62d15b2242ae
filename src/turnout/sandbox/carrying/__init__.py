"""Layers of sandboxes as bytes, for machines that share no folder."""
