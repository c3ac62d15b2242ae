"""From trials to figures."""

from dataclasses import replace
from datetime import UTC, datetime

from tests.trials import arm_of_trials, trial

from turnout.core.money import Micros
from turnout.evals.report.counting.arms import arm_of
from turnout.evals.report.figures import summarise
from turnout.evals.report.model import Section, SetCheck, Unfit
from turnout.evals.trials.model import KindUsage, Trial


def only(trials: list[Trial]) -> Section:
    """Return the one section of a report of trials."""
    (section,) = summarise(trials).sections
    return section


def test_what_could_not_be_graded_is_in_no_rate() -> None:
    """It is counted apart, and so is what was not run."""
    trials = [trial("a"), trial("b", "no_patch"), trial("c", "infrastructure")]
    (section,) = summarise(trials, instances=5).sections
    (arm,) = section.arms
    assert (arm.resolved, arm.graded, arm.trials, section.instances) == (1, 2, 3, 5)
    assert (arm.share.rate, arm.rate_of_all) == (0.5, 1 / 3)


def test_one_unknown_price_makes_the_cost_unknown() -> None:
    """A sum of some of the costs would look cheaper than it was."""
    priced = arm_of("m", [trial("a"), trial("b", "unresolved")])
    assert (priced.cost_micros, priced.cost_per_task, priced.cost_per_resolved) == (
        2000,
        1000,
        2000,
    )
    unpriced = arm_of("m", [trial("a"), trial("b", cost_micros=None)])
    assert unpriced.cost_micros is unpriced.cost_per_task is unpriced.cost_per_resolved is None


def test_a_trial_that_never_began_cost_nothing() -> None:
    """It does not make the cost of its arm unknown."""
    lost = trial("b", "infrastructure", run_id=None, cost_micros=None)
    assert arm_of("m", [trial("a"), lost]).cost_micros == 1000


def test_spend_on_what_failed_belongs_to_what_was_resolved() -> None:
    """The cost of a resolved task is all spend over tasks resolved, ungraded ones included."""
    trials = [trial("a"), trial("b", "unresolved"), trial("c", "infrastructure")]
    assert arm_of("m", trials).cost_per_resolved == 3000
    assert arm_of("m", [trial("a", "unresolved")]).cost_per_resolved is None


def test_tries_of_a_task_count_as_their_mean() -> None:
    """More tries of the same tasks make an interval no narrower, and tell how many flip."""
    tries = [trial("a", "resolved", attempt=n) for n in (1, 2)]
    tries += [trial("b", "resolved", attempt=1), trial("b", "unresolved", attempt=2)]
    arm = arm_of("m", tries)
    assert (arm.share.tasks, arm.share.rate) == (2, 0.75)
    assert (arm.flips.tasks, arm.flips.flipped) == (2, 1)


def test_more_tries_of_the_same_tasks_make_no_cost_surer() -> None:
    """Bounds of a mean cost are those of the tasks."""
    once = [trial(f"t{n}", cost_micros=Micros(100 * n)) for n in range(6)]
    thrice = [replace(each, attempt=n) for each in once for n in (1, 2, 3)]
    assert arm_of("m", once).cost_bounds == arm_of("m", thrice).cost_bounds is not None


def test_results_of_different_modes_are_never_mixed() -> None:
    """Each mode, and each strictness, is a section of its own."""
    trials = [trial("a"), trial("a", mode="visible"), trial("a", mode="visible", strict=True)]
    sections = summarise(trials).sections
    assert [(each.mode, each.strict) for each in sections] == [
        ("hidden", False),
        ("visible", False),
        ("visible", True),
    ]
    assert all(each.arms[0].trials == 1 for each in sections)


def test_the_newest_result_of_a_unit_counts() -> None:
    """A retried trial takes the place of the one before."""
    section = only([trial("a", "infrastructure"), trial("a", "resolved")])
    assert (section.arms[0].trials, section.arms[0].resolved) == (1, 1)


def test_an_arm_that_changed_is_another_arm() -> None:
    """Equal names with different digests are told apart by the digest."""
    trials = [trial("a", arm_digest="1111111122"), trial("a", "unresolved", arm_digest="22222222")]
    assert [arm.name for arm in only(trials).arms] == ["auto (22222222)", "auto (11111111)"]


def test_the_newest_form_of_an_arm_is_the_one_that_is_compared() -> None:
    """Where its policy has changed meanwhile."""
    changed = [trial("a", arm_digest="11111111"), trial("a", arm_digest="22222222")]
    told = only([trial("a", arm="model:b"), *changed]).comparisons
    assert [each.arm for each in told] == ["auto (22222222)"] * 2


def test_tasks_that_say_nothing_are_in_no_rate() -> None:
    """Whether a check of the set found them, or a trial whose tests did not fail before."""
    trials = [trial("a"), trial("b", failed_before=False), trial("c")]
    (section,) = summarise(trials, check=SetCheck(3, (Unfit("c", "row-c", "flaky"),))).sections
    assert section.arms[0].share.tasks == 1
    assert [(each.instance_id, bool(each.reason)) for each in section.unfit] == [
        ("b", True),
        ("c", True),
    ]
    assert len(section.tasks) == 3
    (section,) = summarise(
        trials, check=SetCheck(3, (Unfit("c", "another row", "flaky"),))
    ).sections
    assert section.arms[0].share.tasks == 2


def test_auto_is_compared_with_every_other_arm() -> None:
    """Unless another one is wished for."""
    trials = [
        each for arm in ("model:b", "auto", "model:c") for each in arm_of_trials(arm, ["resolved"])
    ]
    told = [(each.arm, each.reference) for each in only(trials).comparisons]
    assert told == [("auto", "model:b"), ("auto", "model:c")]
    (section,) = summarise(trials, arm="model:c").sections
    assert [each.arm for each in section.comparisons] == ["model:c", "model:c"]


def test_the_two_best_arms_are_compared_as_well() -> None:
    """Which of them is better is what everybody asks first."""
    trials = [
        *arm_of_trials("auto", ["unresolved"] * 4),
        *arm_of_trials("model:small", ["resolved", *["unresolved"] * 3]),
        *arm_of_trials("model:big", ["resolved"] * 4),
    ]
    told = [(each.arm, each.reference) for each in only(trials).comparisons]
    assert told == [("model:big", "model:small"), ("auto", "model:small"), ("auto", "model:big")]


def test_only_arms_that_none_beats_are_on_the_frontier() -> None:
    """One that costs more and resolves less is not, nor one without a known price."""
    cheap = arm_of_trials("cheap", ["resolved", "unresolved", "unresolved"], cost=900)
    good = arm_of_trials("good", ["resolved"] * 3, cost=3000)
    beaten = arm_of_trials("beaten", ["resolved", "unresolved", "unresolved"], cost=1200)
    unknown = [trial(f"task-0{n}", arm="unknown", cost_micros=None) for n in range(3)]
    assert only([*good, *cheap, *beaten, *unknown]).frontier == ("cheap", "good")


def test_calls_are_added_up_by_kind_and_by_model() -> None:
    """Plan, act, summary and answer, the model with most calls first."""
    usage = (
        KindUsage("act", "a", 2, 10, 1, 4, Micros(5), 1.0),
        KindUsage("plan", "b", 1, 7, 2, 0, None, 2.0),
        KindUsage("act", "b", 6, 30, 3, 0, Micros(7), 3.0),
    )
    arm = arm_of("m", [trial("x", usage=usage), trial("y", usage=usage[:1])])
    plan, act = arm.kinds
    assert (plan.kind, plan.cost_micros, act.kind, act.cost_micros) == ("plan", None, "act", 17)
    assert (act.calls, act.input_tokens, act.cache_read_input_tokens) == (10, 50, 8)
    assert [(each.model, each.calls) for each in act.models] == [("b", 6), ("a", 4)]


def test_difficulties_are_in_the_order_of_their_size() -> None:
    """Repositories are in that of their names; what is unknown has no row."""
    trials = [
        trial("a", difficulty=">20", repo="z"),
        trial("b", difficulty="2-5", repo="y"),
        trial("c", difficulty="1"),
    ]
    arm = arm_of("m", trials)
    assert [each.name for each in arm.difficulties] == ["1", "2-5", ">20"]
    assert [each.name for each in arm.repositories] == ["y", "z"]


def test_facts_tell_sets_apart() -> None:
    """Equal tasks give equal digests, whoever ran them."""
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    one = only([trial("a", harness="1.0", started_at=moment), trial("b")]).facts
    same = only([trial("b", arm="other"), trial("a")]).facts
    other = only([trial("a", instance_digest="changed"), trial("b")]).facts
    assert one.set_digest == same.set_digest != other.set_digest
    assert (one.harness, one.first, one.last) == (("1.0",), moment, moment)


def test_no_trials_make_an_empty_report() -> None:
    """Nothing is divided by nothing."""
    assert summarise([]).sections == ()
    (section,) = summarise([trial("a", "infrastructure")]).sections
    assert section.arms[0].share.rate is None
    (section,) = summarise([trial("a", failed_before=False)]).sections
    assert section.arms == section.comparisons == ()


def test_what_a_lost_run_cost_was_spent() -> None:
    """A run that was made again counts in the spend, one that was graded again only once."""
    again = [
        trial("a", "infrastructure", run_id="run-1", cost_micros=Micros(300)),
        trial("a", "unresolved", run_id="run-2", cost_micros=Micros(50)),
        trial("a", "resolved", run_id="run-2", cost_micros=Micros(50)),
    ]
    arm = only(again).arms[0]
    assert (arm.cost_micros, arm.cost_per_task, arm.cost_per_resolved) == (350, 50, 350)
