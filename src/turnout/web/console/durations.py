"""How long something took, for people."""

from typing import Final

__all__ = ["seconds_text"]

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def seconds_text(value: float | None) -> str:
    """Return a duration: `12 ms`, `0.4 s`, `12 s`, `3 min 5 s`, `2 h 1 min`; a dash for None."""
    if value is None:
        return "–"
    if value < 0.1:
        return f"{value * 1_000:.0f} ms"
    if value < 9.95:
        return f"{value:.1f}".removesuffix(".0") + " s"
    left, parts = round(value), list[str]()
    for size, name in _UNITS:
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count} {name}")
    return " ".join(part for part in parts[:2] if not part.startswith("0 "))
