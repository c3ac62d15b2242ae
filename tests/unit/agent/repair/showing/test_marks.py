"""Marks at the lines in which there was an error."""

from hypothesis import given
from hypothesis import strategies as st

from turnout.agent.repair.showing.marks import errors_by_line, marked, unmarked

OUTPUT = """\
>       assert half(x) == 1
a.py:3:
>       return x / None
E       TypeError: unsupported operand
E       more of it
b.py:9: TypeError
____ test_b ____
/workspace/c.py:7: Failed
"""


def test_each_error_is_told_with_its_place() -> None:
    """By its first line; a frame that was only passed has none."""
    found = errors_by_line(OUTPUT)
    assert found["b.py"] == {9: "TypeError: unsupported operand"}
    assert "a.py" not in found
    assert [list(lines.values()) for lines in found.values()][1] == ["Failed"]


def test_a_marked_line_ends_with_its_error() -> None:
    """Lines count from 1."""
    lines = ["x = 1\n", "y = None + 1\n"]
    assert marked(lines, {2: "TypeError"}) == ["x = 1\n", "y = None + 1  # <-- TypeError\n"]


@given(
    st.lists(st.from_regex(r"[a-z #=]{0,9}[a-z]\n", fullmatch=True), max_size=5),
    st.dictionaries(
        st.integers(1, 5), st.text(st.characters(codec="ascii", exclude_categories=["C"]))
    ),
)
def test_a_reply_that_repeats_the_marks_is_as_the_file(
    lines: list[str], errors: dict[int, str]
) -> None:
    """No mark comes into a file."""
    assert unmarked("".join(marked(lines, errors))) == "".join(lines)
