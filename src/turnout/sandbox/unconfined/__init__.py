"""Sandboxes without any walls, for machines where the user asks for them in so many words."""
