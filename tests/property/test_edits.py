"""Whatever a file holds, an edit changes the bytes that were named and no other."""

import textwrap

from hypothesis import assume, given
from hypothesis import strategies as st

from turnout.agent.tools.replacing import replace_all, replace_once
from turnout.errors import ToolError

PIECES = st.lists(
    st.sampled_from([b"a", b"b", b"  ", b"\n", b"\r\n", b"\r", b"\t", b"\x00", b"\xe9", b"\xff"])
    | st.sampled_from(["é", "“", "\u2028", "\x0c", "$&"]).map(str.encode),
    max_size=30,
).map(b"".join)
TEXT = st.text(st.sampled_from("ab \n\t\"'-$\\"), max_size=12)


@given(PIECES, st.integers(0, 40), st.integers(3, 20), TEXT)
def test_a_snippet_of_the_file_is_replaced_alone(
    data: bytes, at: int, length: int, new: str
) -> None:
    """What was copied from the file is found; what stands before and after it stays."""
    at %= max(1, len(data))
    piece = data[at : at + length]
    try:
        old = piece.decode()
    except UnicodeDecodeError:
        return
    assume(old and old != new and "\r" not in old and data.find(piece) == data.rfind(piece))
    assume("\n" not in new or b"\r" not in data)
    start = data.index(piece)
    edited = replace_once(data, old, new).data
    assert edited == data[:start] + new.encode() + data[start + len(piece) :]


@given(PIECES, TEXT, TEXT)
def test_an_edit_keeps_the_lines_that_it_does_not_name(data: bytes, old: str, new: str) -> None:
    """However it was found, the file begins and ends as before; or nothing is done."""
    try:
        edited = replace_once(data, old, new)
    except ToolError:
        return
    head = next((n for n, (a, b) in enumerate(zip(data, edited.data, strict=False)) if a != b), 0)
    named = old.count("\n") + 1
    below = data[head:].splitlines(keepends=True)[named + 1 :]
    assert edited.data.endswith(b"".join(below))
    if edited.likeness == "exact":
        assert len(edited.data) >= len(data) - len(old.encode()) - named


@given(st.text("ab\n", max_size=40), st.text("ab\n", min_size=1, max_size=3), TEXT)
def test_all_occurrences_are_replaced_as_python_does(text: str, old: str, new: str) -> None:
    """One pass, from left to right."""
    count = text.count(old)
    assume(count and old != new)
    assert replace_all(text.encode(), old, new, count).data.decode() == text.replace(old, new)


@st.composite
def programs(draw: st.DrawFn) -> list[str]:
    """Lines of a program of nested blocks, each line there once."""
    lines, depth = [], 0
    for number in range(draw(st.integers(3, 12))):
        depth = draw(st.integers(0, depth))
        opens = draw(st.booleans())
        lines.append("    " * depth + (f"if a{number}:" if opens else f"b{number} = 0"))
        depth += opens
    return [*lines, "    " * depth + "c = 0"]


@given(programs(), st.integers(0, 11), st.integers(1, 6), st.integers(0, 3), st.booleans())
def test_a_block_in_another_indent_is_changed_as_in_its_own(
    lines: list[str], at: int, length: int, deeper: int, tabs: bool
) -> None:
    """Dedented by the model, or indented further, or with spaces where the file has tabs."""
    block = lines[at : at + length]
    assume(block)
    old = textwrap.indent(textwrap.dedent("\n".join(block)), "  " * deeper)
    changed = [line.replace("= 0", "= 1") for line in block]
    new = textwrap.indent(textwrap.dedent("\n".join(changed)), "  " * deeper)
    assume(old != new)
    wanted = "\n".join([*lines[:at], *changed, *lines[at + length :], ""])
    text = "\n".join([*lines, ""])
    if tabs:
        text, wanted = text.replace("    ", "\t"), wanted.replace("    ", "\t")
    assert replace_once(text.encode(), old, new).data.decode() == wanted
