import json

import pytest

from turnout.core.runs import FileChange
from turnout.errors import SandboxError
from turnout.sandbox.collector import read_collected

CHANGES = [
    {"path": "a", "status": "A", "lines": ["1", "0"]},
    {"path": "b\n", "status": "M", "lines": ["-", "-"]},
    {"path": "c", "status": "D", "lines": ["0", "3"]},
    {"path": "d", "status": "T", "lines": ["1", "1"]},
]


def told(**facts: object) -> bytes:
    """Return what a collector prints before the patch."""
    whole = {"changes": [], "excluded": [], "excluded_total": 0, "unrecorded": [], **facts}
    return json.dumps(whole).encode() + b"\n"


def test_changes_are_told_by_kind_with_their_lines():
    """Binary files have no line counts."""
    patch = read_collected(told(changes=CHANGES) + b"diff\n\xff")
    assert patch.diff == b"diff\n\xff"
    assert patch.files == (
        FileChange("a", "added", 1, 0),
        FileChange("b\n", "modified", None, None),
        FileChange("c", "deleted", 0, 3),
        FileChange("d", "type_changed", 1, 1),
    )


def test_what_was_left_out_is_counted_where_it_is_too_much_to_name():
    """The list says how many more there are."""
    patch = read_collected(told(excluded=["a/", "b"], excluded_total=7))
    assert patch.excluded == ("a/", "b", "… and 5 more")
    assert not patch


@pytest.mark.parametrize("output", [b"", b"{}\n", b"[1]\n", told(changes=[{"path": "a"}]), b"\xff"])
def test_an_answer_that_cannot_be_read_is_the_sandbox_s_failure(output):
    """A patch is never made up."""
    with pytest.raises(SandboxError, match="cannot be read"):
        read_collected(output)


def test_a_change_that_was_not_recorded_is_never_passed_over():
    """An incomplete patch is an error that names the path."""
    with pytest.raises(SandboxError, match=r"odd\.bin"):
        read_collected(told(unrecorded=["odd.bin"]))
