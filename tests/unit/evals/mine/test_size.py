"""The size of a change in lines of code."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.evals.mine.size import bucket, changed_lines, code_lines

SOURCE = '''\
"""A module."""

import os  # for paths


def f(a):
    """Say what.

    At length.
    """
    # why
    text = """a
b"""
    return (
        a
    )
'''


def test_comments_blank_lines_and_docstrings_are_no_code() -> None:
    """Strings that are values are, with every line of theirs."""
    assert code_lines(SOURCE) == {3, 6, 12, 13, 14, 15, 16}


def test_what_cannot_be_read_is_counted_by_its_lines() -> None:
    """Blank lines and comments are left out all the same."""
    assert code_lines("def f(:\n\n# no\n  '''\nx\n") == {1, 4, 5}


@given(st.text())
def test_any_text_has_a_size(text: str) -> None:
    """It is never more than there are lines."""
    assert code_lines(text) <= set(range(1, text.count("\n") + 2 + text.count("\r")))


def test_the_larger_side_of_each_place_counts() -> None:
    """A line that is replaced by two is two; a comment is nothing."""
    old = "a = 1\nb = 2\n# c\nd = 4\n"
    new = "a = 1\nb = 3\nb2 = 3\n# e\n# f\n"
    diff = "@@ -2 +2,2 @@\n-b = 2\n+b = 3\n+b2 = 3\n@@ -3,2 +4,2 @@\n-# c\n-d = 4\n+# e\n+# f\n"
    assert changed_lines(diff, old, new) == 3


@pytest.mark.parametrize(
    ("lines", "name"), [(1, "1"), (2, "2-5"), (5, "2-5"), (6, "6-20"), (20, "6-20"), (21, ">20")]
)
def test_sizes_have_classes(lines: int, name: str) -> None:
    """As in the sets of the field."""
    assert bucket(lines) == name
