"""What hides in a text is seen, whichever of Unicode's characters it is made of."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from turnout.cli.terminal import safe
from turnout.core.text import is_unseen, seen_only, visible

HIDING = st.one_of(
    st.characters(categories=["Cf", "Cn", "Co", "Cs", "Zl", "Zp"]),
    st.characters(categories=["Cc"], exclude_characters="\n\t"),
    # Variation selectors, which carry any bytes after any letter.
    st.integers(0xFE00, 0xFE0F).map(chr),
    st.integers(0xE0100, 0xE01EF).map(chr),
    st.sampled_from("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180f\u2800\u3164\uffa0\U0001d173"),
)
LETTERS = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=3)


@given(LETTERS, HIDING, LETTERS)
def test_a_hidden_character_between_letters_is_an_escape(
    before: str, hidden: str, after: str
) -> None:
    """In the console and on the terminal; a model is not shown it at all."""
    assume(visible(before + after) == before + after)
    text = f"{before}{hidden}{after}"
    assert visible(text) == safe(text) == f"{before}{ascii(hidden)[1:-1]}{after}"
    assert seen_only(text) == before + after


@given(st.text())
def test_nothing_unseen_is_left(text: str) -> None:
    """But newlines, tabs, and the selector that follows a sign."""
    left = visible(text).translate({ord(kept): None for kept in "\n\t\ufe0f"})
    assert not any(map(is_unseen, left))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("⚠\ufe0f Look", "⚠\ufe0f Look"),
        ("⚠\ufe0f\ufe0f", "⚠\ufe0f\\ufe0f"),
        ("a\ufe0fb", "a\\ufe0fb"),
        ("\ufe0f", "\\ufe0f"),
        ("👩\u200d💻", "👩\\u200d💻"),
        ("x = '\u3164'", "x = '\\u3164'"),
        ("plain\n\ttext, naïve, 漢字, עברית", "plain\n\ttext, naïve, 漢字, עברית"),
    ],
)
def test_signs_can_still_be_read(text: str, shown: str) -> None:
    """What joins several of them to one picture is told; what colours one stays, once."""
    assert visible(text) == shown
