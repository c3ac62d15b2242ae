"""A report as text, as Markdown and as JSON."""

import json
import re
from dataclasses import fields
from math import nan
from pathlib import Path

import pytest
from tests.trials import arm_of_trials, trial

from turnout.core.money import Micros
from turnout.errors import ConfigError
from turnout.evals.report.figures import summarise
from turnout.evals.report.html.page import report_html
from turnout.evals.report.json import report_json
from turnout.evals.report.markdown import report_markdown
from turnout.evals.report.model import (
    Arm,
    Comparison,
    Facts,
    Flips,
    Kind,
    ModelShare,
    Ratio,
    Report,
    Section,
    Share,
    Unfit,
)
from turnout.evals.report.read import read_rows
from turnout.evals.report.tables import detail_tables, usd_column
from turnout.evals.report.text import report_text
from turnout.evals.report.words import remarks
from turnout.evals.trials.model import KindUsage
from turnout.evals.trials.store import Results

ROOT = Path(__file__).parents[4]
TOKENS = {"input_tokens", "output_tokens", "cache_read_input_tokens"}
HOSTILE = "| a `b` | <script>alert(1)</script> **x** [y](z) @someone\n\n# head \u202e"


def two_arms() -> Report:
    """Return a report of two arms that three tasks cannot tell apart."""
    return summarise(
        [
            *arm_of_trials("auto", ["resolved", "unresolved", "infrastructure"], cost=2_000),
            *arm_of_trials("model:big", ["resolved", "resolved", "resolved"], cost=9_000),
        ],
        instances=4,
    )


def test_the_text_says_what_the_first_table_cannot() -> None:
    """Few tasks, trials without a grade, instances that were not run."""
    text = report_text(two_arms())
    assert "auto and model:big cannot be told apart by their rates" in text
    assert "The sample is too small: 2 tasks cannot tell any two arms apart." in " ".join(
        text.split()
    )
    assert "Could not be graded, left out of every rate: auto 1 trial." in text
    assert "Not run, of 4 instances: All arms 1." in text
    assert "2 tasks are few" in text


def test_what_matters_most_is_said_first_and_the_figures_before_it() -> None:
    """Which arm resolves most, and what comes next; then how sure that is."""
    report = two_arms()
    said = remarks(report.sections[0])
    assert said[0] == (
        "Most resolved: model:big, 3 of 3 (100%), $0.009 each. "
        "Next: auto, 1 of 2 (50%), $0.006 each."
    )
    assert said[1].startswith("auto and model:big cannot be told apart")
    for form in (report_text(report), report_markdown(report), report_html(report)):
        assert form.index("95 % interval") < form.index("Most resolved")


def test_remarks_of_a_kind_are_made_once_for_all_arms() -> None:
    """Five arms of few tasks are one thing to know."""
    names = ("auto", "model:big", "model:small", "policy:draft.toml", "own")
    rows = [
        each
        for name in names
        for each in arm_of_trials(name, ["resolved", "unresolved", "infrastructure"])
    ]
    said = remarks(summarise(rows, instances=9).sections[0])
    for kind in ("are few", "Could not be graded", "Not run", "cannot be told apart by"):
        assert sum(kind in each for each in said) == 1
    assert "Cannot be told apart by their rates: auto from " in " ".join(said)
    assert "auto 1 trial, model:big 1 trial" in " ".join(said)
    one = remarks(summarise([trial("a")]).sections[0])
    assert any(each.startswith("1 task is too few") for each in one)


def test_what_is_so_of_several_arms_is_said_once() -> None:
    """The same advice for each of them is one to read."""
    calls = (
        KindUsage("plan", "m", 1, 100, 20, 0, Micros(10)),
        KindUsage("act", "m", 9, 900, 180, 0, Micros(90)),
    )
    rows = [trial("a", arm=arm, usage=calls) for arm in ("auto", "policy:a", "policy:b")]
    (told,) = [r for r in remarks(summarise(rows).sections[0]) if r.startswith("Act steps")]
    assert told.startswith("Act steps in the cost. auto, policy:a, policy:b: They make up 90%")
    assert told.count("They make up") == 1


def test_nothing_is_called_best_where_nothing_was_resolved() -> None:
    """Nor one of several that resolve equally many."""
    none = [trial("a", "unresolved", arm=arm) for arm in "ab"]
    assert remarks(summarise(none).sections[0])[0].startswith("No arm has resolved a task")
    same = [trial("a", arm=arm) for arm in "ab"]
    assert remarks(summarise(same).sections[0])[0].startswith("Equally many resolved, and most: a")


def test_what_counts_tool_calls_says_which_of_two_things_it_counts() -> None:
    """A call may be well-formed and end with an error."""
    (table,) = [t for t in detail_tables(two_arms().sections[0]) if t.title == "Tool calls"]
    assert "ended without an error" in table.heads
    assert "well-formed" in table.note


def test_arms_have_one_row_each_in_columns_that_line_up() -> None:
    """Rate, interval, steps, time and cost."""
    lines = report_text(two_arms(), details=False).splitlines()
    head = next(place for place, line in enumerate(lines) if line.startswith("arm "))
    row = re.split(r"\s{2,}", lines[head + 1])
    assert row == [
        "auto",
        "1 of 2",
        "50%",
        "9% to 91%",
        "33%",
        "3",
        "30 s",
        "$0.002",
        "$0.002",
        "$0.006",
        "$0.006",
    ]
    assert len(lines[head]) >= max(len(line) for line in lines[head + 1 : head + 3])


def test_amounts_of_a_column_are_told_to_the_same_digit() -> None:
    """Else the dearest looks the roundest; unknown prices and nothing at all are words."""
    assert usd_column([19_873.0, 1_450.0, None, nan]) == ["$0.01987", "$0.00145", "unpriced", "-"]
    assert usd_column([5_240_000.0, 40_000.0]) == ["$5.24", "$0.04"]
    assert usd_column([nan]) == ["-"]


def test_details_are_left_out_where_they_are_not_wanted() -> None:
    """The short form has the first table alone."""
    whole, brief = report_text(two_arms()), report_text(two_arms(), details=False)
    for title in ("Paired on the same tasks", "Model calls by kind", "Every task", "Tool calls"):
        assert title in whole
        assert title not in brief
    assert report_text(summarise([])) == "There are no trials."


def test_markdown_holds_the_same_tables() -> None:
    """Each row has as many cells as its head."""
    text = report_markdown(two_arms())
    assert "cannot be told apart" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) > 15
    wanted = 0
    for before, line in zip(["", *rows], rows, strict=False):
        cells = len(re.findall(r"(?<!\\)\|", line))
        wanted = cells if line.startswith("| ---") else wanted
        if line.startswith("| ---"):
            assert len(re.findall(r"(?<!\\)\|", before)) == cells
    assert text.count("<details>") == text.count("</details>") > 5


def test_no_name_leaves_its_cell_of_the_markdown() -> None:
    """Marks, HTML, line breaks and what turns text round are shown as they are."""
    hostile = trial(HOSTILE, arm=HOSTILE, smells=(HOSTILE,), repo=HOSTILE, difficulty=HOSTILE)
    text = report_markdown(summarise([hostile, trial("t", "unresolved", arm="b")]))
    assert "\u202e" not in text
    assert "\n# head" not in text
    code = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
    for line in text.splitlines():
        beside = code.sub("", line)
        assert "<script>" not in beside.replace("\\<", "")
        assert len(re.findall(r"(?<!\\)\|", line)) in {0, *range(3, 15)}


def test_markdown_fits_into_a_comment() -> None:
    """What does not is left out whole, and said to be."""
    many = [trial(f"t{n}-{'x' * 1500}", smells=("look",) * 2, repo=f"r{n}") for n in range(200)]
    text = report_markdown(summarise([*many, *(trial(f"t{n}", arm="b") for n in range(3))]))
    assert len(text) < 61_000
    assert text.endswith("The rest is in the whole report.\n")
    assert text.count("<details>") == text.count("</details>")


def test_a_patch_that_bent_the_tests_is_to_be_looked_at() -> None:
    """Beside changes to tests and what its lines mention, each once."""
    row = trial(
        "t", "unresolved", canary_failed=False, tests_touched=("tests/a.py",), smells=("s",)
    )
    (table,) = [t for t in detail_tables(summarise([row]).sections[0]) if t.left == 3][-1:]
    assert [said for *_, said in table.rows] == [
        "made tests pass that were bound to fail",
        "changed tests/a.py",
        "s",
    ]


def test_every_field_of_the_object_is_in_its_reference() -> None:
    """`docs/reference/eval-files.md` names each."""
    told = (ROOT / "docs/reference/eval-files.md").read_text()
    kinds = (Section, Arm, Comparison, Share, Kind, ModelShare, Flips, Ratio, Facts, Unfit)
    names = {field.name for kind in kinds for field in fields(kind)}
    unknown = names - set(re.findall(r"`([a-z_]+)`", told)) - {"tasks"}
    assert not unknown - TOKENS


def test_a_report_as_json_is_read_like_its_results(tmp_path: Path) -> None:
    """The same figures come out of it, in the same order, without the patches."""
    report = two_arms()
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report_json(report), indent=2))
    again = summarise(read_rows(path), instances=4)
    told = report_json(again)
    assert told == report_json(report)
    assert all(not row.diff for row in again.trials)
    section = json.loads(json.dumps(told))["sections"][0]
    assert section["arms"][0]["share"]["rate"] == 0.5
    assert section["remarks"]


def test_results_are_read_with_what_was_tried_again(tmp_path: Path) -> None:
    """Every row counts for the spend, the newest for the rate."""
    results = Results(tmp_path / "r.jsonl")
    rows = [trial("a", "infrastructure", run_id="run-1"), trial("a", "resolved", run_id="run-2")]
    with results.writing():
        for row in rows:
            results.add(row)
    assert read_rows(tmp_path / "r.jsonl") == tuple(rows)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "is not there"),
        ("[1, 2]\n", "is no result of an evaluation"),
        ('{"kind": "turnout eval report", "trials": [{"instance_id": 3}]}', "of which 0."),
        ('{"kind": "turnout eval report"}', "is wrong"),
        ('{"kind": "turnout eval report", "schema": 9, "trials": []}', "report of format 9"),
    ],
)
def test_a_file_that_is_neither_is_an_error(tmp_path: Path, text: str | None, said: str) -> None:
    """It says which file, and what is wrong with it."""
    path = tmp_path / "x.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=said):
        read_rows(path)
