"""What a person is shown cannot steer the terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.cli.terminal import coloured_diff, safe

DIFF = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-old\n+new\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x9b31m", r"\x9b31m"),
        ("good\r-bad", r"good\r-bad"),
        ("a\u202eb", r"a\u202eb"),
        ("a\udcffb", r"a\udcffb"),
        ("ünïcode 漢", "ünïcode 漢"),
    ],
)
def test_what_steers_a_terminal_is_written_out(text: str, shown: str) -> None:
    """Escapes, returns and turned writing directions are seen, not obeyed."""
    assert safe(text) == shown


@given(st.text())
def test_no_control_character_gets_through(text: str) -> None:
    """Whatever a model writes, only newline and tab are left."""
    assert all(c in "\n\t" or (ord(c) >= 32 and not 127 <= ord(c) < 160) for c in safe(text))


def test_a_diff_is_the_same_text_with_and_without_colour() -> None:
    """Colour adds nothing but colour."""
    assert coloured_diff(DIFF, colour=False) == DIFF.rstrip()
    coloured = coloured_diff(DIFF, colour=True)
    assert "\x1b[32m+new\x1b[0m" in coloured
    assert "\x1b[31m-old\x1b[0m" in coloured


def test_an_escape_hidden_in_a_diff_is_shown() -> None:
    """A patch cannot hide a line from its reader."""
    assert "\x1b" not in coloured_diff("+safe\x1b[1A\x1b[2K", colour=False)
