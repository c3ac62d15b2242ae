"""Under what trials were made, in every form of a report."""

import json
from dataclasses import replace
from pathlib import Path

from tests.trials import arm_of_trials, conditions_of

from turnout.evals.conditions.model import TaskSet
from turnout.evals.report.figures import summarise
from turnout.evals.report.html.page import report_html
from turnout.evals.report.json import report_json
from turnout.evals.report.markdown import report_markdown
from turnout.evals.report.model import Report, Section
from turnout.evals.report.read import read_kept
from turnout.evals.report.text import report_text
from turnout.evals.report.told import told_conditions
from turnout.evals.report.words import remarks, set_words

TOLD = {
    "mode": "hidden, lenient",
    "tries": "1 of each task by each arm",
    "limits": "120 s a run, $2.00 in all, 1.5 hours, 2 runs and 1 grading at once, "
    "300 CPU seconds for grading tests",
    "machine": "2 CPUs (A CPU), 8.0 GiB, Linux 6.1 x86_64, Python 3.11.2, sandboxes by bubblewrap",
    "seeds": "hashes: 0",
    "arm auto": "auto; policy default, revision 3, p0licy; digest-auto",
    "model big": "own/big, works by loop, $1 in and $2.5 out a million tokens",
    "model small": "local/small, works by repair, small-q4_k_m.gguf (, SHA-256 abababababab), "
    "0 threads, $0 in and $0 out a million tokens",
    "commands began": "2026-03-01 00:00 UTC",
}


def half_done() -> Report:
    """Return a report of an evaluation that has tried two of four tasks."""
    trials = [
        *arm_of_trials("auto", ["resolved", "unresolved"]),
        *arm_of_trials("model:big", ["resolved"]),
    ]
    return summarise(trials, conditions=[conditions_of()])


def section_of(report: Report) -> Section:
    """Return its one section."""
    (section,) = report.sections
    return section


def test_all_that_one_needs_to_run_it_again_is_told() -> None:
    """Set, mode, limits, machine, seeds, policies by revision, models by file, and when."""
    told = dict(told_conditions(section_of(half_done())))
    assert {name: told[name] for name in TOLD} == TOLD
    assert told["set"].startswith("2 of 4 instances tried, set ")


def test_the_page_says_which_tasks_and_under_which_rules() -> None:
    """File of tasks, repositories, and what each policy says."""
    conditions = conditions_of()
    arms = (replace(conditions.arms[0], rules="optimize cost; pool.models big"),)
    trials = arm_of_trials("auto", ["resolved"] * 4)
    report = summarise(trials, conditions=[replace(conditions, arms=arms)])
    told = dict(told_conditions(section_of(report)))
    assert told["arm auto"].endswith("; optimize cost; pool.models big")
    assert told["repositories"] == (
        "example/repo-0 (2 tasks), example/repo-1 (1 task), example/repo-2 (1 task)"
    )
    assert "<h1>Evaluation: tasks.jsonl</h1>" in report_html(report)


def test_arms_are_in_the_order_of_the_command() -> None:
    """Whichever happened to end its first trial before the others."""
    trials = [
        *arm_of_trials("model:small", ["resolved"]),
        *arm_of_trials("model:big", ["resolved"]),
        *arm_of_trials("auto", ["resolved"]),
        *arm_of_trials("new", ["resolved"]),
    ]
    under = conditions_of().arms[0]
    arms = tuple(replace(under, name=name) for name in ("model:big", "auto", "model:small"))
    section = section_of(summarise(trials, conditions=[conditions_of(arms=arms)]))
    assert [arm.name for arm in section.arms] == ["auto", "model:big", "model:small", "new"]


def test_every_form_of_a_report_tells_it() -> None:
    """On the screen, as a page and as Markdown; words that are long are cut into lines."""
    report = half_done()
    for form in (report_text(report), report_html(report), report_markdown(report)):
        plain = " ".join(form.replace("\\", "").replace("`", "").split())
        assert "policy default, revision 3" in plain
        assert "SHA-256 abababababab" in plain
        assert "2 of 4 instances tried" in plain
    assert "Run under" not in report_text(report, details=False)


def test_commands_under_other_conditions_are_told_one_after_the_other() -> None:
    """What is the same in all of them is told once."""
    first = conditions_of()
    moved = replace(first, machine=replace(first.machine, cpus=8))
    trials = arm_of_trials("auto", ["resolved"])
    told = dict(told_conditions(section_of(summarise(trials, conditions=[first, moved]))))
    assert "2 CPUs" in told["machine"].partition("; then ")[0]
    assert "8 CPUs" in told["machine"].partition("; then ")[2]
    assert "then" not in told["limits"]


def test_without_conditions_what_is_known_of_the_trials_is_told() -> None:
    """Results of older versions hold no more."""
    section = section_of(summarise(arm_of_trials("auto", ["resolved"])))
    told = dict(told_conditions(section))
    assert told["models"] == "fast-auto, strong-auto"
    assert told["arm auto"] == "digest-auto"
    assert not told.keys() & {"machine", "limits", "seeds"}


def test_what_is_unfinished_is_said_with_its_size() -> None:
    """Both what no arm has tried, by name, and how many trials are left."""
    said = " ".join(remarks(section_of(half_done())))
    assert (
        "Not run, of 4 instances: auto 2, model:big 3; no arm has tried task-02, task-03." in said
    )
    assert "Unfinished: 5 of 8 trials are not done; the same command goes on." in said
    whole = [
        *arm_of_trials("auto", ["resolved"] * 4),
        *arm_of_trials("model:big", ["resolved"] * 4),
    ]
    done = section_of(summarise(whole, conditions=[conditions_of()]))
    assert "Unfinished" not in " ".join(remarks(done))
    assert set_words(done).startswith("4 instances, set ")


def test_what_was_left_out_beforehand_is_said_with_why() -> None:
    """It is a part of the set, and of no rate."""
    rows = conditions_of().tasks.instances
    tasks = TaskSet("tasks.jsonl", rows, (("task-03", "its tests are flaky"),))
    section = section_of(
        summarise(arm_of_trials("auto", ["resolved"] * 3), conditions=[conditions_of(tasks=tasks)])
    )
    said = " ".join(remarks(section))
    assert "1 of 4 instances left out before any trial (task-03: its tests are flaky)." in said
    assert "Not run" not in said


def test_arms_on_different_tasks_are_not_to_be_compared_by_their_rates() -> None:
    """An arm that was given the easy ones would look better."""
    said = " ".join(remarks(section_of(half_done())))
    assert "The rates of the table are of different tasks (auto 2, model:big 1; 1 task in" in said


def test_a_report_that_was_kept_knows_them_as_well(tmp_path: Path) -> None:
    """They are in the object, once."""
    path, report = tmp_path / "r.json", half_done()
    path.write_text(json.dumps(report_json(report)))
    kept = read_kept(path)
    assert kept.conditions == report.conditions
    again = summarise(kept.trials, conditions=kept.conditions)
    assert report_json(again) == report_json(report)
