"""Candidates without one of their changes."""

from hypothesis import given
from hypothesis import strategies as st

from turnout.agent.repair.grafting.graft import Candidate
from turnout.agent.repair.grafting.lesser import lesser
from turnout.agent.repair.grafting.matching import Target

BEFORE = b"def f(a):\n    b = a\n    return b\n"


def tried(after: bytes, before: bytes = BEFORE, path: str = "a.py") -> list[bytes]:
    """Return what the file is in each candidate."""
    candidate = Candidate({path: after}, (Target(path, "f"),))
    return [each.files[path] for each in lesser(candidate, {path: before})]


def test_statements_that_were_put_in_are_left_out_one_by_one() -> None:
    """Each with its body, and with the branches that belong to it."""
    one = b"    if a < 0:\n        return 0\n    else:\n        a += 1\n"
    two = b"    while a:\n        a -= 1\n\n"
    whole = BEFORE.replace(b"    b = a\n", one + two + b"    b = a\n")
    assert tried(whole) == [whole.replace(one, b""), whole.replace(two, b"")]


def test_what_was_changed_is_put_back_one_by_one() -> None:
    """Line ends and all."""
    before = b"def f(a):\r\n    b = a\r\n    c = 1\r\n    return b\r\n"
    after = before.replace(b"b = a", b"b = a + 1").replace(b"return b", b"return c")
    assert tried(after, before) == [
        before.replace(b"return b", b"return c"),
        before.replace(b"b = a", b"b = a + 1"),
    ]


def test_one_change_has_no_lesser() -> None:
    """It is taken back as a whole."""
    assert tried(BEFORE.replace(b"b = a", b"b = -a")) == []


def test_what_does_not_parse_is_none() -> None:
    """Unless it is another language."""
    after = BEFORE.replace(
        b"    b = a\n    return b\n", b"    if a:\n        c = 1\n        return c\n"
    )
    before = BEFORE.replace(b"    b = a\n", b"    b = a\n    c = 1\n")
    for each in tried(after, before):
        compile(each, "a.py", "exec")
    assert tried(b"a(\nx\nb)\n", b"x\n", "a.js") == [b"x\nb)\n", b"a(\nx\n"]


def test_files_have_their_changes_one_by_one() -> None:
    """One that is then as it was is no part of the candidate; four are enough."""
    before = {f"{n}.py": b"x = 1\n" for n in range(6)}
    candidate = Candidate(dict.fromkeys(before, b"x = 2\n"), ())
    found = lesser(candidate, before)
    assert [len(each.files) for each in found] == [5] * 4
    assert "0.py" not in found[0].files


@given(
    st.lists(st.sampled_from([b"a = 1\n", b"b = 2\n", b"if a:\n    c = 3\n"]), max_size=6),
    st.data(),
)
def test_each_is_between_what_was_and_what_is(blocks: list[bytes], data: st.DataObject) -> None:
    """No line comes from elsewhere, and none is the candidate itself or no change."""
    other = data.draw(st.permutations(blocks))
    before, after = b"".join(blocks), b"".join([b"d = 0\n", *other, b"e = 0\n"])
    lines = {*before.splitlines(), *after.splitlines()}
    for each in tried(after, before):
        assert each not in (before, after)
        assert set(each.splitlines()) <= lines
