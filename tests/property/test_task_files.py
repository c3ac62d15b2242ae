"""Files of tasks: every row is read, wherever it is written."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from turnout.evals.instances.entries import entries

BLANK = st.text(" \t\n", max_size=3)
ROWS = st.lists(
    st.dictionaries(st.text(max_size=3), st.text(alphabet='[]{},"\\\n\u2028é x', max_size=6)),
    min_size=1,
    max_size=4,
)


def read(text: str) -> list[tuple[int, object]]:
    """Return line and value of every entry."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "tasks"
        path.write_text(text, "utf-8")
        return [
            (int(each.place.rpartition(" ")[2]), json.loads(each.text)) for each in entries(path)
        ]


@given(ROWS, st.data())
def test_rows_of_a_list_are_found_with_their_lines(
    rows: list[dict[str, str]], data: st.DataObject
) -> None:
    """Whatever is in their strings, and however much room is between them."""
    text, expected = "[", []
    for number, row in enumerate(rows):
        text += ("," if number else "") + data.draw(BLANK)
        expected.append((text.count("\n") + 1, row))
        text += json.dumps(row, ensure_ascii=False) + data.draw(BLANK)
    assert read(f"{text}]\n") == expected


@given(ROWS, st.data())
def test_rows_of_lines_are_found_with_their_lines(
    rows: list[dict[str, str]], data: st.DataObject
) -> None:
    """A separator of lines that is no newline separates nothing."""
    text, expected = "", []
    for row in rows:
        text += data.draw(BLANK)
        expected.append((text.count("\n") + 1, row))
        text += json.dumps(row, ensure_ascii=False) + "\n"
    assert read(text) == expected
