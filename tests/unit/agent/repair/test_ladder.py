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
    """Each round is about the next target; every second one is about the first one again."""
    rungs = climb(Ladder(9, [A, B]))
    assert [(rung.ask, rung.target) for rung in rungs] == [
        *[("correct", None)] * 3,
        *[("name", A), ("rewrite", A), ("insist", None)],
        *[("name", B), ("rewrite", B), ("name", A)],
    ]
    assert [rung.temperature for rung in rungs] == [0.0, 0.8, 0.8, 0.8, 0.0, 1.0, 0.8, 0.0, 1.0]


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
    assert asked == ["correct", "name", "rewrite", "insist", "correct", "correct"]


def test_what_is_too_long_is_edited_from_the_first_rung_on() -> None:
    """It is never to be written anew."""
    rungs = climb(Ladder(12, [A, B], frozenset({A})))
    assert [(rung.ask, rung.target) for rung in rungs[:4]] == [("edit", A)] * 4
    assert ("rewrite", A) not in [(rung.ask, rung.target) for rung in rungs]
    assert ("rewrite", B) in [(rung.ask, rung.target) for rung in rungs]
    assert len(set(rungs)) == 12


def test_a_constant_has_no_body_to_be_written_anew() -> None:
    """It is named only."""
    rungs = climb(Ladder(20, [A, B], constants=frozenset({A})))
    assert {rung.ask for rung in rungs if rung.target == A} == {"name"}


def test_a_later_attempt_draws_what_no_earlier_one_drew() -> None:
    """As many candidates; the greedy one would be the same again."""
    first, second = climb(Ladder(9, [A])), climb(Ladder(9, [A], seed=1_000, greedy=False))
    assert len(second) == 9
    assert not set(first) & set(second)
    assert second[0].temperature > 0
