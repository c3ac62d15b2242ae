"""A report as one HTML page."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

from tests.trials import arm_of_trials, trial

from turnout.core.ids import RunId
from turnout.core.money import Micros
from turnout.evals.report.figures import summarise
from turnout.evals.report.html.page import report_body, report_css, report_html
from turnout.evals.report.model import Report
from turnout.evals.report.texts import TaskText

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)> &amp; \u202e'
EMPTY = {"meta", "br", "hr", "line", "rect", "circle", "path", "polygon"}


class Page(HTMLParser):
    """What a browser would find: elements that are closed in order, with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember an element."""
        self.found.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember an element that holds nothing."""
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """Close the element that was opened last."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Remember words."""
        self.words.append(data)

    def all(self, name: str) -> list[str]:
        """Return all values of an attribute."""
        return [value for _, attributes in self.found if (value := attributes.get(name))]

    def count(self, tag: str) -> int:
        """Return how many elements there are of a kind."""
        return sum(name == tag for name, _ in self.found)


def report() -> Report:
    """Return a report of three arms, with a plot of each kind."""
    grades = ["resolved", "unresolved", "resolved", "no_patch", "infrastructure", "resolved"]
    return summarise(
        [
            *arm_of_trials("auto", ["resolved"] * 6, cost=3_000),
            *arm_of_trials("model:big", grades, cost=90_000),
            *arm_of_trials("model:small", ["unresolved"] * 6, cost=900),
        ]
    )


def test_the_page_needs_nothing_else() -> None:
    """No script, nothing from anywhere, no style outside of its sheet."""
    page = Page(report_html(report()))
    assert {"script", "link", "img", "iframe", "object"}.isdisjoint(tag for tag, _ in page.found)
    assert not page.all("style")
    (policy,) = [value for value in page.all("content") if "default-src" in value]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert not any(name.startswith("on") for _, attributes in page.found for name in attributes)
    assert all(value.startswith("#") for value in page.all("href"))
    assert not re.search(r"url\(|@import|https?:", report_css())


def test_every_id_is_there_once_and_every_reference_leads_to_one() -> None:
    """Links, names of plots; also where two sections hold the same tasks."""
    trials = [*report().trials, *(trial(f"task-{n:02}", mode="visible") for n in range(3))]
    trials.append(trial("task-01", instance_digest="changed meanwhile"))
    page = Page(report_html(summarise(trials)))
    ids = page.all("id")
    assert len(ids) == len(set(ids))
    named = [name for value in page.all("aria-labelledby") for name in value.split()]
    assert named
    assert {*named, *(value[1:] for value in page.all("href"))} <= set(ids)


def test_every_region_has_a_name_of_its_own() -> None:
    """Whoever moves from one to the next is told which it is."""
    trials = [*report().trials, *(trial(f"task-{n:02}", mode="visible") for n in range(3))]
    labels = Page(report_html(summarise(trials))).all("aria-label")
    assert len(labels) > 20
    assert len(labels) == len(set(labels))


def test_there_are_plots_of_six_kinds_each_with_words() -> None:
    """What a plot shows is told as well, and stands in a table."""
    page = report_html(report())
    parsed = Page(page)
    titles = re.findall(r"<figcaption>(.*?)</figcaption>", page)
    assert titles == [
        "Pass rate with 95 % interval",
        "Cost of a task against pass rate",
        "Cost of each task, auto against model:big",
        "Cost of each task, auto against model:small",
        "Pass rate by size of the known fix",
        "Model of each kind of call",
        "Resolved against spend",
    ]
    assert parsed.count("desc") == parsed.count("figcaption") == len(titles)
    assert all(len(words) > 10 for words in re.findall(r"<desc[^>]*>(.*?)</desc>", page))


def test_where_nothing_has_a_price_plots_are_of_time() -> None:
    """Local models cost nothing; their minutes still differ."""
    free = [trial(f"t{n}", arm=arm, cost_micros=Micros(0)) for arm in "ab" for n in range(3)]
    page = report_html(summarise(free))
    assert "Time of a task against pass rate" in page
    assert "Resolved against time" in page


def test_one_arm_without_a_grade_is_a_page_as_well() -> None:
    """So is one without any trial, and one whose tasks all say nothing."""
    for trials in (
        [],
        [trial("a", "infrastructure", run_id=None, cost_micros=None)],
        [trial("a", failed_before=False)],
        [trial("a")],
    ):
        Page(report_html(summarise(trials)))


def test_no_text_becomes_markup() -> None:
    """Ids, titles, arms, models, patches and reasons are shown as they are."""
    bad = trial(
        HOSTILE,
        arm=HOSTILE,
        title=HOSTILE,
        repo=HOSTILE,
        difficulty=HOSTILE,
        detail=HOSTILE,
        reason=HOSTILE,
        harness=HOSTILE,
        run_id=RunId(HOSTILE),
        smells=(HOSTILE,),
        tests_touched=(HOSTILE,),
        diff=f"+{HOSTILE}\n-{HOSTILE}\n@@{HOSTILE}",
    )
    html = report_html(summarise([bad, trial(HOSTILE, "unresolved", arm="b")]))
    page = Page(html)
    assert {"script", "img"}.isdisjoint(tag for tag, _ in page.found)
    assert "onerror" not in {name for _, attributes in page.found for name in attributes}
    assert "\u202e" not in html
    assert "\\u202e" in html


def test_every_task_opens_to_its_trials() -> None:
    """With the run's id, how to show it, the checks and the patch."""
    html = report_html(report())
    assert html.count("<details") == 6
    assert html.count('<section class="trial">') == 18
    assert "turnout runs show run-task-03 --full" in html
    assert "none was made" in html
    assert "<ins>+x = 2" in html


def test_another_page_can_hold_the_report_and_link_its_runs() -> None:
    """It has no heading of the first level, and every rule of its sheet is about itself."""
    body = report_body(report(), lambda run_id: f"/console/runs/{run_id}")
    page = Page(body)
    assert page.count("h1") == page.count("style") == 0
    assert page.count("h2") == 1
    assert "/console/runs/run-task-03" in page.all("href")
    for rule in re.findall(r"^ *([^@{}\n]+?) *\{", report_css(), re.MULTILINE):
        assert all(part.strip().startswith(".report") for part in rule.split(","))


def test_a_patch_without_end_is_cut() -> None:
    """The page stays one that a browser can show."""
    huge = [trial("a", diff="+x\n" * 100_000), trial("b", diff="+" + "y" * 1_000_000)]
    html = report_html(summarise(huge))
    assert len(html) < 100_000
    assert "the rest is in the results file" in html


def placed(page: str, title: str) -> str:
    """Return the picture of that title."""
    return page.partition(f"<figcaption>{title}")[2].partition("</figure>")[0]


def test_points_that_coincide_are_counted_and_lie_beside_each_other() -> None:
    """Of five tasks at one place one mark would show; of two arms at one place one arm."""
    rows = [
        *arm_of_trials("auto", ["resolved"] * 5 + ["unresolved"] * 2),
        *arm_of_trials("model:same", ["resolved"] * 5 + ["unresolved"] * 2),
    ]
    page = report_html(summarise(rows))
    pairs = placed(page, "Cost of each task, auto against model:same")
    assert ">×5</text>" in pairs
    assert ">×2</text>" in pairs
    arms = placed(page, "Cost of a task against pass rate").partition("<ul")[0]
    centres = re.findall(r'<(?:circle[^>]*cx="([\d.]+)"|polygon[^>]*points="([\d.]+))', arms)
    assert len(centres) == len(set(centres)) == 2


def test_no_value_of_an_axis_is_cut_off() -> None:
    """Small amounts are long words, left of the picture and at its right end."""
    rows = [
        *arm_of_trials("auto", ["resolved"] * 4, cost=133),
        *arm_of_trials("b", ["resolved"] * 4, cost=171),
    ]
    for figure in re.findall(r"<svg[^>]*role=.*?</svg>", report_html(summarise(rows)), re.DOTALL):
        for at, anchor, words in re.findall(
            r'<text x="([-\d.]+)"[^>]*text-anchor="(\w+)"[^>]*>(\$[\d.]+|[\d.]+ s)</text>', figure
        ):
            width = 7.0 * len(words)
            left = float(at) - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
            assert 0 <= left <= left + width <= 440.5


def test_no_value_of_an_axis_runs_into_the_next() -> None:
    """Where there is no room for all of them, some lines have no value."""
    rows = [
        *arm_of_trials("auto", ["resolved"] * 4, cost=150),
        *arm_of_trials("b", ["resolved"] * 4, cost=198),
    ]
    page = report_html(summarise(rows))
    rows_of: dict[str, list[tuple[float, float]]] = {}
    plot = placed(page, "Cost of each task")
    for at, y, anchor, words in re.findall(
        r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)"[^>]*>(\$[\d.]+)</text>', plot
    ):
        width = 7.0 * len(words)
        left = float(at) - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
        rows_of.setdefault(y, []).append((left, left + width))
    assert max(map(len, rows_of.values())) > 1
    for places in rows_of.values():
        assert all(a[1] < b[0] for a, b in pairwise(sorted(places)))


def test_a_task_is_shown_with_what_it_says_and_how_it_was_mended() -> None:
    """Of the row that was run: after a change it says something else."""
    told = TaskText(f"Counts wrong. {HOSTILE}", ("tests/test_a.py::test_b",) * 25, "+fixed = 1\n")
    made = summarise([trial("a"), trial("b")])
    other = ("b", "another row")
    html = report_html(replace(made, texts={("a", "row-a"): told, other: told}))
    assert html.count("Counts wrong.") == html.count("<ins>+fixed = 1") == 1
    assert "and 5 more" in html
    assert {"script", "img"}.isdisjoint(tag for tag, _ in Page(html).found)
    labels = Page(html).all("aria-label")
    assert len(labels) == len(set(labels))
