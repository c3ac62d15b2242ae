"""What the calls of an arm say about its pool."""

from turnout.core.inference import StepKind
from turnout.core.money import Micros
from turnout.evals.report.counting.advice import warnings_of
from turnout.evals.report.model import Kind, ModelShare


def kind(name: StepKind, cost: int | None, *calls: int) -> Kind:
    """Make the calls of one kind, shared by as many models as there are numbers."""
    micros = None if cost is None else Micros(cost)
    models = tuple(ModelShare(f"m{n}", each, None) for n, each in enumerate(calls))
    return Kind(name, sum(calls), 0, 0, 0, micros, 0.0, models)


def test_act_steps_that_dominate_the_cost_are_named() -> None:
    """Plan and answer should; a pinned arm routes nothing and is told nothing."""
    kinds = [kind("plan", 100, 1), kind("act", 350, 9), kind("answer", 50, 1)]
    (said,) = warnings_of("auto", kinds)
    assert said.startswith("Act steps make up 70% of the cost")
    assert warnings_of("model:m0", kinds) == warnings_of("renamed", kinds) == ()
    assert warnings_of("auto", [kind("plan", 300, 1), *kinds[1:]]) == ()


def test_nothing_is_said_of_costs_that_are_unknown_or_nothing() -> None:
    """A local model costs nothing, whichever kind it answers."""
    assert warnings_of("auto", [kind("plan", None, 1), kind("act", 5, 1)]) == ()
    assert warnings_of("auto", [kind("plan", 0, 1), kind("act", 0, 1)]) == ()


def test_calls_that_scatter_over_models_are_named() -> None:
    """Two may share a kind; one that answers a call in a hundred does not count."""
    (said,) = warnings_of("auto", [kind("act", 0, 50, 30, 20)])
    assert "3 models share the act calls (m0, m1, m2)" in said
    assert warnings_of("auto", [kind("act", 0, 50, 49, 1)]) == ()
