"""The order of the candidates."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from turnout.agent.repair.grafting.excerpt import Region
from turnout.agent.repair.grafting.matching import Target
from turnout.agent.repair.ladder import Ladder, Rung
from turnout.agent.repair.suspects import Suspects

A, B, C = Target("a.py", "a"), Target("b.py", "b"), Target("c.py", "c")


def suspects(
    targets: Sequence[Target] = (),
    regions: Mapping[Target, tuple[Region, ...]] | None = None,
    long: Iterable[Target] = (),
    constants: Iterable[Target] = (),
) -> Suspects:
    """Name the suspects; their code does not matter."""
    return Suspects((), tuple(targets), 0, regions or {}, frozenset(long), frozenset(constants))


def climb(ladder: Ladder, *, unchanged: bool = False) -> list[Rung]:
    """Take every rung."""
    rungs = []
    while (rung := ladder.next(unchanged=unchanged)) is not None:
        rungs.append(rung)
    return rungs


def test_where_all_is_shown_clean_samples_come_first() -> None:
    """Then turns of the targets, and in between the model is asked to insist."""
    rungs = climb(Ladder(8, suspects([A, B])))
    assert [(rung.ask, rung.target) for rung in rungs] == [
        *[("correct", None)] * 3,
        *[("mend", A), ("mend", B), ("insist", None), ("name", A), ("name", B)],
    ]
    assert [rung.temperature for rung in rungs] == [0.0, 0.8, 0.8, 0.0, 0.0, 1.0, 0.8, 0.8]


def test_in_a_larger_tree_each_prompt_is_about_one_target() -> None:
    """The most suspected comes again before the last has its first turn."""
    many = [A, B, C, *(Target("d.py", f"d{n}") for n in range(9))]
    rungs = climb(Ladder(8, suspects(many), whole=False))
    turns = [(rung.ask, rung.target.name if rung.target else "") for rung in rungs]
    assert turns == [
        *[("mend", "a"), ("mend", "b"), ("mend", "c"), ("name", "a")],
        *[("mend", "d0"), ("name", "b"), ("mend", "d1"), ("name", "c")],
    ]


def test_the_number_of_samples_bounds_it() -> None:
    """Also where there is no target."""
    assert len(climb(Ladder(2, suspects([A])))) == 2
    assert len(climb(Ladder(7, suspects()))) == 7
    assert len(climb(Ladder(7, suspects(), whole=False))) == 7
    assert climb(Ladder(0, suspects())) == []


def test_no_prompt_is_sent_twice_with_one_seed() -> None:
    """A repeated draw would be a repeated answer."""
    rungs = climb(Ladder(30, suspects([A, B])))
    assert len(set(rungs)) == 30


def test_after_unchanged_code_the_rungs_about_a_target_come_first() -> None:
    """The clean samples are kept for the end."""
    ladder = Ladder(6, suspects([A]))
    first = ladder.next(unchanged=False)
    rest = climb(ladder, unchanged=True)
    assert first is not None
    asked = [rung.ask for rung in (first, *rest)]
    assert asked == ["correct", "mend", "name", "insist", "correct", "correct"]


def test_what_is_too_long_is_mended_in_its_lines() -> None:
    """Place by place, the first again before the last."""
    places = tuple(Region(line, line + 9) for line in (1, 20, 40, 60))
    rungs = climb(Ladder(5, suspects([A], {A: places}, [A]), whole=False))
    assert [(rung.ask, rung.region, rung.temperature) for rung in rungs] == [
        *[("lines", places[0], 0.0), ("lines", places[1], 0.0), ("lines", places[0], 0.8)],
        *[("lines", places[2], 0.0), ("lines", places[1], 0.8)],
    ]


def test_where_an_error_was_raised_the_statement_comes_before_the_function() -> None:
    """The reply is short, and seldom a copy."""
    rungs = climb(Ladder(4, suspects([A], {A: (Region(3, 5),)}), whole=False))
    assert [(rung.ask, rung.temperature) for rung in rungs] == [
        *[("lines", 0.0), ("mend", 0.0), ("lines", 0.8), ("name", 0.8)]
    ]


def test_of_a_statement_that_failed_there_are_clean_samples_first() -> None:
    """Nothing says more than an error that nobody raised."""
    broken = replace(suspects([A, B], {A: (Region(3, 5),)}), broken=frozenset({A}))
    rungs = climb(Ladder(7, broken, whole=False))
    assert [(rung.ask, rung.target, rung.temperature) for rung in rungs] == [
        *[("lines", A, heat) for heat in (0.0, 0.8, 0.8, 1.0, 1.0)],
        *[("mend", A, 0.0), ("mend", B, 0.0)],
    ]
    assert len(set(rungs)) == 7


def test_a_body_can_be_asked_for_but_not_that_of_a_constant() -> None:
    """A constant has no body to be written anew."""
    assert "rewrite" in {rung.ask for rung in climb(Ladder(9, suspects([A]), whole=False))}
    named = climb(Ladder(9, suspects([A], constants=[A]), whole=False))
    assert {rung.ask for rung in named} == {"mend", "name"}


def test_a_later_attempt_draws_what_no_earlier_one_drew() -> None:
    """As many candidates; the greedy ones would be the same again."""
    one = suspects([A])
    first, second = climb(Ladder(9, one)), climb(Ladder(9, one, seed=1_000, greedy=False))
    assert len(second) == 9
    assert not set(first) & set(second)
    assert all(rung.temperature > 0 for rung in second)
