"""Content blocks of the messages shape, read, written and marked."""
