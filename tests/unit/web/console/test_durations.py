"""Durations as pages tell them."""

import pytest

from turnout.web.console.durations import seconds_text


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "–"),
        (0.0, "0 ms"),
        (0.0123, "12 ms"),
        (0.25, "0.2 s"),
        (2.0, "2 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (185, "3 min 5 s"),
        (7_260, "2 h 1 min"),
        (86_400 * 2, "2 d"),
    ],
)
def test_a_duration_has_at_most_two_units(value: float | None, said: str) -> None:
    """In the largest that fit, and never as nothing where it took something."""
    assert seconds_text(value) == said
