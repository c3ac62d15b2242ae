"""Find text in text, in linear time whatever it is."""

__all__ = ["MOST", "occurrences"]

MOST = 1_000
"""Occurrences after which the search ends."""


def occurrences(text: str, wanted: str, most: int = MOST, *, overlapping: bool = True) -> list[int]:
    """Return where `wanted` starts in `text`, from the start on, at most `most` places."""
    step = 1 if overlapping else len(wanted)
    starts: list[int] = []
    at = text.find(wanted)
    while at >= 0 and len(starts) < most:
        starts.append(at)
        at = text.find(wanted, at + step)
    return starts
