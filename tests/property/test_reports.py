"""Reports of any trials."""

import json
from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.core.ids import RunId
from turnout.core.money import Micros
from turnout.evals.grading.model import GradeName
from turnout.evals.report.figures import summarise
from turnout.evals.report.html.page import report_html
from turnout.evals.report.json import report_json
from turnout.evals.report.markdown import report_markdown
from turnout.evals.report.text import report_text
from turnout.evals.trials.model import KindUsage, Trial

names = st.sampled_from(["a", "b", "c", "\x00<b>&\u202e|`"])
costs = st.one_of(st.none(), st.sampled_from([0, 1, 10**9]).map(Micros))
usages = st.builds(
    KindUsage,
    kind=st.sampled_from(["plan", "act", "answer"]),
    model=names,
    calls=st.integers(0, 3),
    input_tokens=st.integers(0, 10),
    output_tokens=st.integers(0, 10),
    cost_micros=costs,
)
trials = st.builds(
    Trial,
    instance_id=names,
    instance_digest=st.sampled_from(["x", "y"]),
    grade=st.sampled_from(get_args(GradeName)),
    arm=names,
    arm_digest=st.sampled_from(["", "1"]),
    mode=st.sampled_from(["hidden", "visible"]),
    attempt=st.integers(1, 3),
    repo=names,
    difficulty=st.sampled_from(["", "1", ">20", "odd"]),
    run_id=st.one_of(st.none(), names.map(RunId)),
    failed_before=st.sampled_from([None, True, True, True, False]),
    usage=st.lists(usages, max_size=2).map(tuple),
    seconds=st.sampled_from([0.0, 0.5, 3e4]),
    cost_micros=costs,
    diff=names,
)


@settings(max_examples=15)
@given(st.lists(trials, max_size=12))
def test_every_form_can_be_made_of_any_trials(rows: list[Trial]) -> None:
    """None fails, and numbers that are none are in none of them."""
    report = summarise(rows)
    told = json.dumps(report_json(report), allow_nan=False)
    page = report_html(report)
    assert told
    assert "nan" not in page
    assert "inf" not in page.replace("infrastructure", "")
    assert "<b>" not in page
    assert report_markdown(report).startswith("## Evaluation")
    assert report_text(report)


@settings(max_examples=15)
@given(st.lists(trials, max_size=12))
def test_the_figures_agree_with_each_other(rows: list[Trial]) -> None:
    """Every trial is in one arm of one section, and every cell of a comparison is a task."""
    report = summarise(rows)
    units = {row.unit for row in rows}
    for section in report.sections:
        for arm in section.arms:
            assert 0 <= arm.resolved <= arm.graded <= arm.trials
            assert sum(count.trials for count in arm.grades) == arm.trials
            if arm.share.rate is not None:
                assert arm.share.interval.low <= arm.share.rate <= arm.share.interval.high
        for each in section.comparisons:
            cells = each.both + each.only_arm + each.only_reference + each.neither
            assert cells == each.tasks
            assert -1 <= each.bounds.low <= each.difference + 1e-9
            assert each.difference - 1e-9 <= each.bounds.high <= 1
            assert 0 < each.p <= each.adjusted_p <= 1
        assert set(section.frontier) <= {arm.name for arm in section.arms}
    tasks = [
        trial for s in report.sections for t in s.tasks for r in t.results for trial in r.trials
    ]
    assert {trial.unit for trial in tasks} == units
    assert len(tasks) == len(units)
