"""Find bytes in bytes, in linear time whatever they are."""

__all__ = ["MOST", "occurrences"]

MOST = 1_000
"""Occurrences after which the search ends."""


def occurrences(data: bytes, wanted: bytes) -> list[int]:
    """Return where `wanted` starts in `data`, overlaps included, at most `MOST` places."""
    starts: list[int] = []
    at = data.find(wanted)
    while at >= 0 and len(starts) < MOST:
        starts.append(at)
        at = data.find(wanted, at + 1)
    return starts
