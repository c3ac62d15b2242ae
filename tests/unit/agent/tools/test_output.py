"""What a model reads of a long output or file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.agent.tools.output import cap, failing, printed
from turnout.agent.tools.read_file import page
from turnout.errors import ToolError


@given(st.text(max_size=400), st.integers(100, 300))
def test_a_capped_text_fits_and_keeps_both_ends(text: str, limit: int) -> None:
    """Nothing is cut from what fits; else head and tail stay and the gap is stated exactly."""
    capped = cap(text, limit)
    assert len(capped.text) <= limit
    if len(text) <= limit:
        assert capped.text == text
        return
    room = limit - 60
    assert capped.text.startswith(text[: room // 4])
    assert capped.text.endswith(text[-(room - room // 4) :])
    assert f"[... {capped.elided} characters left out ...]" in capped.text
    assert capped.elided == len(text) - room


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("FAILED tests/a.py::test_x[1] - assert 1 == 2", "tests/a.py::test_x[1]"),
        ("ERROR tests/a.py", "tests/a.py"),
        ("FAIL: test_x (tests.a.Case)", "test_x"),
        ("    --- FAIL: TestX/part (0.00s)", "TestX/part"),
    ],
)
def test_failing_tests_are_found_by_name(line: str, name: str) -> None:
    """As runners state them, once each; the words of a log are no tests."""
    assert failing(f"ERROR connecting\n{line}\nFAILED again\n{line}\n") == (name,)


def test_names_of_failing_tests_are_bounded() -> None:
    """The first ones are kept whole."""
    names = failing("".join(f"FAILED a.py::test_{n}\n" for n in range(500)))
    assert names[:2] == ("a.py::test_0", "a.py::test_1")
    assert sum(map(len, names)) < 1_000


def test_terminal_escapes_are_removed() -> None:
    """Colours and titles are no text; bytes that are no UTF-8 do not stop anything."""
    assert printed(b"\x1b[31mred\x1b[0m \x1b]0;title\x07\xff\r\n") == "red \ufffd\n"


@given(
    st.lists(st.text(alphabet="ab\r\u2028é", max_size=40), min_size=1, max_size=30),
    st.integers(5, 60),
)
def test_pages_join_to_the_whole_file(lines: list[str], room: int) -> None:
    """Following the notes reads every character once, whatever the lines are like."""
    text = "\n".join([*lines, "end"])
    read, line, column = "", 1, 1
    for _ in range(len(text) + 2):
        shown = page(text, line, column, room)
        assert len(shown.text) <= room
        read += shown.text
        if not shown.note:
            break
        if "column=" in shown.note:
            column = int(shown.note.rpartition("column=")[2].rstrip("]"))
        else:
            line, column = int(shown.note.rpartition("offset=")[2].rstrip("]")), 1
            read += "\n"
    assert read == text


def test_an_offset_beyond_the_end_is_refused() -> None:
    """The message says how long the file is."""
    with pytest.raises(ToolError, match="has 2 lines"):
        page("a\nb\n", 3, 1, 100)
