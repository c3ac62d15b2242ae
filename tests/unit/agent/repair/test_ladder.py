"""The order of the candidates."""

from turnout.agent.repair.grafting.matching import Target
from turnout.agent.repair.ladder import Ladder, Rung

A, B = Target("a.py", "a"), Target("b.py", "b")


def climb(ladder: Ladder, *, unchanged: bool = False) -> list[Rung]:
    """Take every rung."""
    rungs = []
    while (rung := ladder.next(unchanged=unchanged)) is not None:
        rungs.append(rung)
    return rungs


def test_it_goes_from_greedy_to_named_targets() -> None:
    """Each round is about the next target, and about the first one again."""
    rungs = climb(Ladder(11, [A, B]))
    assert [(rung.ask, rung.target) for rung in rungs] == [
        *[("correct", None)] * 3,
        *[("name", A), ("insist", None), ("name", A), ("rewrite", A)],
        *[("name", B), ("insist", None), ("name", A), ("rewrite", B)],
    ]
    assert [rung.temperature for rung in rungs[:7]] == [0.0, 0.8, 0.8, 0.8, 1.0, 1.0, 0.0]


def test_the_number_of_samples_bounds_it() -> None:
    """Also where there is no target."""
    assert len(climb(Ladder(2, [A]))) == 2
    assert len(climb(Ladder(7, []))) == 7
    assert climb(Ladder(0, [])) == []


def test_no_prompt_is_sent_twice_with_one_seed() -> None:
    """A repeated draw would be a repeated answer."""
    rungs = climb(Ladder(30, [A, B]))
    assert len(set(rungs)) == 30


def test_after_unchanged_code_the_insisting_rungs_come_first() -> None:
    """The clean samples are kept for the end."""
    ladder = Ladder(6, [A])
    first = ladder.next(unchanged=False)
    rest = climb(ladder, unchanged=True)
    assert first is not None
    asked = [rung.ask for rung in (first, *rest)]
    assert asked == ["correct", "name", "insist", "name", "correct", "correct"]
