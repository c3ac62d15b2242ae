"""Tokens that a model call used."""

from dataclasses import dataclass

__all__ = ["Usage"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one or more model calls."""

    input_tokens: int = 0
    """All tokens sent, those read from or written to a prompt cache included."""
    output_tokens: int = 0
    """All tokens generated, reasoning included."""
    cache_read_input_tokens: int = 0
    """The part of `input_tokens` that a prompt cache answered."""
    cache_creation_input_tokens: int = 0
    """The part of `input_tokens` that was written to a prompt cache."""
    estimated: bool = False
    """True where the upstream gave no counts and these are our own estimate."""

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_input_tokens + other.cache_read_input_tokens,
            self.cache_creation_input_tokens + other.cache_creation_input_tokens,
            self.estimated or other.estimated,
        )
