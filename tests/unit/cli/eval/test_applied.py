"""What is said of an evaluation that is applied."""

from dataclasses import replace
from datetime import UTC, datetime

from turnout.cli.eval.evidence.applied import beside_text, preview_text, scores_text
from turnout.core.govern.evidence import Evaluation, Score, in_force
from turnout.gateway.evaluations.preview import Preview, RouteChange
from turnout.gateway.evaluations.views import PreviewOut

AT = datetime(2026, 1, 1, tzinfo=UTC)
SCORES = (Score("m", 3, 4), Score("n", 1, 4))
OLD = Evaluation("e1", "coding", "hidden", AT, "old set", SCORES, tasks="abc")
NEW = replace(
    OLD,
    id="e2",
    source="new set",
    scores=(Score("m", 1, 10), Score("o", 9, 10)),
    tasks="def",
    beside=True,
)


def test_the_best_model_is_told_first() -> None:
    """With how many tasks that rests on, and what it ranks by."""
    head, best, last = scores_text(NEW).splitlines()
    assert head == "evaluation e2: coding, hidden tests, new set, set def, measured 2026-01-01"
    assert best == "  o  0.90 of 10 tasks, at least 0.60"
    assert last.startswith("  m  0.10")


def test_what_was_measured_on_other_tasks_is_told_where_it_is_ranked_beside() -> None:
    """The figures of two sets say less of two models than those of one."""
    preview = PreviewOut.of(Preview((), in_force([OLD, NEW]), (), ()))
    assert beside_text(NEW, preview) == (
        "n: 0.25 of 4 still counts beside it, measured on other tasks "
        "(evaluation e1, hidden tests: old set)"
    )
    assert beside_text(NEW, PreviewOut.of(Preview((), in_force([NEW]), (), ()))) == ""
    again = replace(NEW, tasks="abc", beside=False)
    told = beside_text(again, PreviewOut.of(Preview((), in_force([OLD, again]), (), ())))
    assert told.startswith("n: 0.25 of 4 still counts beside it, measured on the same set of tasks")


def test_what_is_not_ranked_beside_it_is_told_with_how_to_do_so_all_the_same() -> None:
    """Only where something of the same task kind counts no more."""
    alone = replace(NEW, beside=False)
    forgets = PreviewOut.of(Preview((), in_force([OLD, alone]), OLD.results()[1:], ()))
    assert "--beside" in beside_text(alone, forgets)
    other = replace(OLD, task="chat").results()
    assert beside_text(alone, PreviewOut.of(Preview((), (), other, ()))) == ""


def test_what_changes_is_told_with_its_reason() -> None:
    """And what is forgotten, and what nobody deploys."""
    routes = (
        RouteChange("default", "quality", "coding", None, None, "Nobody is eligible."),
        RouteChange("default", "cost", "coding", None, "p/m", "p/m: the only one."),
    )
    forgotten = OLD.results()[1:]
    text = preview_text(PreviewOut.of(Preview(routes, (), forgotten, ("o",))))
    assert text.splitlines() == [
        "coding requests under policy default:",
        "  quality   nobody, as before",
        "  cost      nobody → p/m",
        "            p/m: the only one.",
        "n: 0.25 of 4 counts no more (evaluation e1, hidden tests: old set)",
        "o: no deployment has this model, so far",
    ]
