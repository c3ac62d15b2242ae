"""Lines of a long definition: which are chosen, and how a reply takes their place."""

import ast
import textwrap
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.agent.repair.grafting.excerpt import Region, regions
from turnout.agent.repair.grafting.graft import Candidate, Place, Rejected, graft
from turnout.agent.repair.grafting.matching import Target
from turnout.agent.repair.grafting.source import Module, parse_module

CODE = """\
def f(x):
    first = x
    if first:
        a = 1
        b = 2
    elif x is None:
        c = 3
    else:
        d = 4
    for each in range(3):
        try:
            e = 5
        except ValueError:
            g = 6
    return first
"""


def module(text: str = CODE) -> Module:
    """Parse a file given as text."""
    parsed = parse_module("a.py", text.encode())
    assert parsed is not None
    return parsed


def replied(code: str, first: int, last: int, text: str = CODE) -> Candidate | Rejected:
    """Put a reply in the place of some lines."""
    place = Place(Target("a.py", "f"), Region(first, last))
    return graft(f"```python\n{code}\n```", [module(text)], {}, place=place)


def after(code: str, first: int, last: int, text: str = CODE) -> str:
    """Return the file after a reply that must be accepted."""
    found = replied(code, first, last, text)
    assert isinstance(found, Candidate)
    assert found.changed == (Target("a.py", "f"),)
    return found.files["a.py"].decode()


@pytest.mark.parametrize(
    ("line", "limit", "wanted"),
    [
        (12, 40, Region(12, 12)),
        (12, 100, Region(11, 14)),
        (7, 30, Region(7, 7)),
        (6, 30, Region(3, 9)),
        (5, 30, Region(4, 5)),
        (2, 10_000, Region(2, 15)),
    ],
)
def test_a_region_is_made_of_whole_statements(line: int, limit: int, wanted: Region) -> None:
    """As many around the line as fit; a branch is no statement, and one too long stays whole."""
    parsed = module()
    assert regions(parsed, parsed.definitions[0], [line], limit, 1) == (wanted,)


def test_regions_are_about_different_lines() -> None:
    """A line that an earlier region holds makes none, nor one outside; none wanted: the end."""
    parsed = module()
    found = regions(parsed, parsed.definitions[0], [4, 5, 99, 12, 15], 40, 2)
    assert found == (Region(4, 5), Region(12, 12))
    assert regions(parsed, parsed.definitions[0], [], 20, 2) == (Region(15, 15),)


def test_a_reply_takes_the_place_of_the_lines() -> None:
    """Laid out as they are, whatever its own margin."""
    assert after("e = 7\nh = 8", 12, 12) == CODE.replace(
        "            e = 5\n", "            e = 7\n            h = 8\n"
    )
    assert "        a = 3\n        b = 2\n" in after("        a = 3\n        b = 2", 4, 5)


def test_a_reply_that_is_a_part_of_the_lines_leaves_the_others() -> None:
    """It belongs where the lines are that it is most like, changed ones included."""
    text = after("    a = 1\n    n = 9\n    b = 2", 2, 9)
    assert text == CODE.replace("        b = 2\n", "        n = 9\n        b = 2\n")
    assert after("a = 7\nb = 2", 2, 9) == CODE.replace("a = 1", "a = 7")
    assert after("raise ValueError(x)", 14, 14) == CODE.replace("g = 6", "raise ValueError(x)")


def test_a_reply_wrapped_into_its_function_is_unwrapped() -> None:
    """The function is long: what is in the reply is not all of it."""
    assert after("def f(x):\n    e = 7", 12, 12) == CODE.replace("e = 5", "e = 7")


def test_a_hostile_reply_costs_no_time() -> None:
    """However many and long its lines are."""
    started = time.process_time()
    for reply in ("x\n" * 19_000, "\n".join(["y = " + "ab" * 90] * 99)):
        replied(reply, 2, 15)
    assert time.process_time() - started < 3


def test_line_endings_of_the_file_are_kept() -> None:
    """Also between new lines."""
    text = CODE.replace("\n", "\r\n")
    assert after("e = 7\nh = 8", 12, 12, text).count("\n") == text.count("\n") + 1
    assert "\n" not in after("e = 7\nh = 8", 12, 12, text).replace("\r\n", "")


@pytest.mark.parametrize(
    ("code", "why"),
    [("e  =  5  # so", "unchanged"), ("return (\n5)", "accepted"), ("(", "no_code")],
)
def test_a_reply_is_refused_for_its_reason(code: str, why: str) -> None:
    """Unchanged but for layout; or no code."""
    found = replied(code, 12, 12)
    assert (found.why if isinstance(found, Rejected) else "accepted") == why


@given(st.lists(st.integers(1, 15), max_size=4), st.integers(1, 400), st.integers(1, 4))
def test_the_lines_of_a_region_parse_by_themselves(
    wanted: list[int], limit: int, most: int
) -> None:
    """Else no reply to them could."""
    parsed = module()
    found = regions(parsed, parsed.definitions[0], wanted, limit, most)
    assert len(found) <= most
    for region in found:
        text = parsed.lines(region.first, region.last)
        ast.parse(textwrap.dedent(text))
        assert replied(text, region.first, region.last) == Rejected(
            "unchanged", "It repeats the code unchanged."
        )
