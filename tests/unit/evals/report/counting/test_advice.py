"""What the calls of an arm say about its pool."""

from dataclasses import replace

from tests.trials import conditions_of

from turnout.core.inference import StepKind
from turnout.core.money import Micros
from turnout.evals.conditions.model import ModelUsed
from turnout.evals.report.counting.advice import Price, prices_of, warnings_of
from turnout.evals.report.model import Kind, ModelShare


def kind(name: StepKind, cost: int | None, *calls: int) -> Kind:
    """Make the calls of one kind, shared by as many models as there are numbers."""
    micros = None if cost is None else Micros(cost)
    models = tuple(ModelShare(f"m{n}", each, None) for n, each in enumerate(calls))
    return Kind(name, sum(calls), 0, 0, 0, micros, 0.0, models)


PRICES = {"m0": Price(3.0, 15.0), "m1": Price(0.3, 1.0)}


def by(kinds: list[Kind], model: str) -> list[Kind]:
    """Return calls with some tokens that one model has answered, but for the plan."""
    return [
        replace(
            each,
            input_tokens=100,
            models=each.models
            if each.kind == "plan"
            else (ModelShare(model, each.calls, each.cost_micros),),
        )
        for each in kinds
    ]


def test_a_dear_model_that_takes_the_act_steps_is_named() -> None:
    """Where a cheaper one is there; a pinned arm routes nothing and is told nothing."""
    kinds = by([kind("plan", 100, 1), kind("act", 350, 9), kind("answer", 50, 1)], "m0")
    (said,) = warnings_of("auto", kinds, PRICES)
    assert "They make up 70% of the cost" in said.text
    assert "by m0, although m1 is cheaper" in said.text
    assert warnings_of("model:m0", kinds, PRICES) == warnings_of("renamed", kinds, PRICES) == ()
    assert warnings_of("auto", [kind("plan", 300, 1), *kinds[1:]], PRICES) == ()


def test_no_cause_is_named_that_prices_do_not_show() -> None:
    """More act steps than plans cost more, however cheap their model; that alone is told."""
    kinds = [kind("plan", 100, 1), kind("act", 350, 9), kind("answer", 50, 1)]
    (cheapest,) = warnings_of("auto", by(kinds, "m1"), PRICES)
    assert "9 of 11 calls, by the cheapest model there is (m1)." in cheapest.text
    (unknown,) = warnings_of("auto", by(kinds, "m9"), PRICES)
    middle = {**PRICES, "m2": Price(0.1, 0.1)}
    (between,) = warnings_of("auto", by(kinds, "m1"), middle)
    assert "by a cheaper model (m1) than the plan" in between.text
    for each in (cheapest, unknown, between):
        assert each.text.startswith("They make up 70% of the cost")
        assert "Look at the pool" not in each.text


def test_prices_are_those_that_commands_ran_under() -> None:
    """The newest; of several providers of a model the lowest. What is unknown is no price."""
    first = conditions_of()
    assert prices_of([first]) == {"big": Price(1.0, 2.5), "small": Price(0.0, 0.0)}
    dear = ModelUsed("other/big", "big", "loop", "9", "9")
    dark = ModelUsed("other/dark", "dark", "loop")
    later = replace(first, models=(dear, ModelUsed("own/big", "big", "loop", "2", "3"), dark))
    assert prices_of([first, later])["big"] == Price(2.0, 3.0)
    assert "dark" not in prices_of([later])


def test_nothing_is_said_of_costs_that_are_unknown_or_nothing() -> None:
    """A local model costs nothing, whichever kind it answers."""
    assert warnings_of("auto", [kind("plan", None, 1), kind("act", 5, 1)]) == ()
    assert warnings_of("auto", [kind("plan", 0, 1), kind("act", 0, 1)]) == ()


def test_calls_that_scatter_over_models_are_named() -> None:
    """Two may share a kind; one that answers a call in a hundred does not count."""
    (said,) = warnings_of("auto", [kind("act", 0, 50, 30, 20)])
    assert "3 models share the act calls (m0, m1, m2)" in said.text
    assert warnings_of("auto", [kind("act", 0, 50, 49, 1)]) == ()
