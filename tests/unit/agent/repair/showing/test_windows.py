"""What of a long text is shown."""

from hypothesis import given
from hypothesis import strategies as st

from turnout.agent.repair.showing.windows import window

TEXT = [f"line {number}" for number in range(1, 101)]


def test_the_neighbours_of_wanted_lines_are_shown() -> None:
    """What is left out is marked."""
    shown = window(TEXT, [50, 90], 50).split("\n")
    assert shown == ["[...]", *TEXT[48:51], "[...]", *TEXT[88:91], "[...]"]


def test_without_a_wanted_line_the_start_is_shown() -> None:
    """Wanted lines that are not there count as none."""
    assert window(TEXT, [], 20).split("\n") == [*TEXT[:2], "[...]"]
    assert window(TEXT, [0, 4_000], 20) == window(TEXT, [], 20)


@given(
    st.lists(st.text("ab ", max_size=9), max_size=40),
    st.lists(st.integers(-2, 45), max_size=6),
    st.integers(0, 200),
)
def test_lines_are_shown_whole_in_order_and_within_the_limit(
    lines: list[str], wanted: list[int], limit: int
) -> None:
    """All of them where there is room."""
    shown = [line for line in window(lines, wanted, limit).split("\n") if line != "[...]"]
    rest = iter(lines)
    assert all(line in rest for line in shown if line)
    assert sum(len(line) + 1 for line in shown) <= max(limit, 1)
    if limit > sum(len(line) + 1 for line in lines):
        assert window(lines, wanted, limit) == "\n".join(lines)
