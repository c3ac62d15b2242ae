"""Second thoughts about a reply, and the replies that come of them."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.agent.repair.forking.fork import Fork, forks
from turnout.core.inference import Alternative

REPLY = '''\
```python
def price(items, rate):
    """Sum it up."""
    total = 0
    for item in items:  # each of them
        if item.amount > 1:
            total += item.price(
                item.amount,
                rate,
            )
    # nothing more
    return total - rate
```'''


def at(before: str, text: str, logprob: float = -1.0, *, reply: str = REPLY) -> Fork:
    """Return a fork before some words of a reply."""
    return Fork(reply, reply.index(before), text, logprob)


def other(before: str, text: str, instead: str = "?", logprob: float = -1.0) -> Alternative:
    """Return an alternative before some words of the reply."""
    return Alternative(REPLY.index(before), text, instead, logprob)


def test_the_likeliest_comes_first() -> None:
    """However they were told."""
    found = forks(REPLY, [other("- rate", "*", logprob=-3), other("> 1", ">=", logprob=-2)])
    assert [(fork.text, fork.logprob) for fork in found] == [(">=", -2), ("*", -3)]
    assert found[0].begun.endswith("if item.amount >=")


@pytest.mark.parametrize(
    "idle",
    [
        other("```python", "Sure"),
        other("def price", "class"),
        other("Sum it", "Add"),
        other("each of", "all"),
        other("nothing", "the"),
        other("total = 0", "  "),
        other("total = 0", "# start"),
        other("total = 0", '"""'),
        other("total = 0", "'x", '"x'),
        other("\n```", "```"),
    ],
)
def test_what_says_no_other_code_is_none(idle: Alternative) -> None:
    """What is around the code, its first word, comments, docstrings, blanks, quotation marks."""
    assert forks(REPLY, [idle]) == ()


def test_one_token_does_not_crowd_out_the_others() -> None:
    """Nor does a reply the others."""
    many = [other("> 1", f"v{n}", logprob=-n / 9) for n in range(9)]
    found = forks(REPLY, [*many, other("- rate", "*", logprob=-5)])
    assert [fork.text for fork in found] == ["v0", "v1", "v2", "*"]
    places = [Alternative(n, "x", "y", -1.0) for n in range(20, 200)]
    assert len(forks(REPLY, places)) == 40


def test_a_reply_without_fences_has_forks_too() -> None:
    """All of it is code then; what does not parse has no comments to be left out."""
    bare = "a = 1\nb = (\n"
    assert [f.text for f in forks(bare, [Alternative(4, "2", "1", -1.0)])] == ["2"]


def test_the_fork_is_back_at_the_next_line() -> None:
    """What follows is as before."""
    fork = at("> 1", ">=")
    assert fork.stops[0] == "\n            total += item.price("
    assert fork.ended(" 1:") == REPLY.replace("> 1", ">= 1")


def test_a_statement_of_several_lines_is_said_to_its_end() -> None:
    """So that what belongs together can change together."""
    fork = at("item.amount,", "1")
    assert fork.stops == ("\n    # nothing more", "\n    return total - rate")
    told = ",\n                rate + 1,\n            )"
    assert fork.ended(told) == REPLY.replace("item.amount,", "1,").replace("rate,\n", "rate + 1,\n")


def test_lines_that_are_put_in_push_nothing_out() -> None:
    """A guard comes before what was there, which is said once more: the fork was in it."""
    fork = at("total = 0", "if")
    guard = " rate < 0:\n        raise ValueError(rate)\n    total = 0\n    "
    ended = "    if rate < 0:\n        raise ValueError(rate)\n    total = 0\n"
    assert fork.ended(guard) == REPLY.replace("    total = 0\n", ended)


def test_lines_that_are_said_anew_do_not_follow_twice() -> None:
    """The model went past the line at which it could have stopped."""
    fork = at("total = 0", "sum")
    told = " = 0\n    for item in items:\n        if item.amount >= 1:"
    changed = REPLY.replace("total = 0", "sum = 0").replace("> 1", ">= 1")
    assert fork.ended(told) == changed.replace("  # each of them", "")


def test_an_end_of_the_code_is_the_end() -> None:
    """Nothing of the reply follows."""
    assert at("total = 0", "return").ended(" 0\n```\nThat is all.") == (
        '```python\ndef price(items, rate):\n    """Sum it up."""\n    return 0\n```'
    )


def test_what_is_cut_counts_to_the_end_of_its_last_line() -> None:
    """Half a line is none."""
    fork = at("total = 0", "if")
    assert fork.ended(" rate < 0 and", cut=True) is None
    told = " rate < 0:\n        return 0\n    total = 0\n    for it"
    guard = "    if rate < 0:\n        return 0\n    total = 0"
    assert fork.ended(told, cut=True) == REPLY.replace("    total = 0", guard)


def test_what_was_begun_may_be_said_again() -> None:
    """Some servers answer with all of the message."""
    fork = at("> 1", ">=")
    assert fork.ended(fork.begun + " 1:") == fork.ended(" 1:")


@pytest.mark.parametrize("reply", [REPLY, "x = 1", "```\n(\n```", "", "```python\nif a:\n```"])
def test_every_reply_has_an_end(reply: str) -> None:
    """Also one that does not parse."""
    fork = Fork(reply, len(reply) // 2, "?", -1.0)
    assert (fork.ended("!") or "").startswith(fork.begun)


SIMPLE: Sequence[str] = (
    "a = f(1)",
    "if a > 2:",
    "    return a",
    "b = a + 3",
    "g(b, a)",
    "return b",
)


@given(st.data())
def test_a_fork_that_says_what_was_said_gives_the_reply(data: st.DataObject) -> None:
    """Wherever it is: neither a line too few nor one too many."""
    lines = data.draw(st.permutations(SIMPLE[:1] + SIMPLE[3:]))
    body = "".join(f"    {line}\n" for line in [*SIMPLE[1:3], *lines])
    reply = f"```python\ndef h(a):\n{body}```"
    place = data.draw(
        st.integers(len("```python\nd"), len(reply) - 5).filter(lambda n: reply[n] != "\n")
    )
    fork = Fork(reply, place, reply[place], -1.0)
    rest = reply[place + 1 :]
    ends = [rest.index(stop) for stop in fork.stops if stop in rest]
    told = rest[: min(ends)] if ends else rest
    assert fork.ended(told) == reply


@given(st.text(max_size=200), st.text(max_size=60), st.integers(0, 260), st.booleans())
def test_no_text_is_too_odd(reply: str, told: str, place: int, cut: bool) -> None:
    """A model can say anything anywhere."""
    fork = Fork(reply, min(place, len(reply)), "x", -1.0)
    assert len(fork.stops) <= 4
    ended = fork.ended(told, cut=cut)
    assert ended is None or isinstance(ended, str)
