"""Orders that come from a queue of messages."""
