"""A report as HTML: a page of its own, or what another page holds."""

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files

from turnout.core.ids import RunId
from turnout.evals.report.html.detail import RunLink, anchors_of, task_list
from turnout.evals.report.html.markup import Html, element, join, text
from turnout.evals.report.html.plots.costs import cost_plot
from turnout.evals.report.html.plots.frame import Plot, figure
from turnout.evals.report.html.plots.kinds import kind_plot
from turnout.evals.report.html.plots.paired import paired_plot
from turnout.evals.report.html.plots.rates import difficulty_plot, rate_plot
from turnout.evals.report.html.plots.spend import spend_plot
from turnout.evals.report.html.tables import table_html
from turnout.evals.report.model import Report, Section
from turnout.evals.report.tables import arm_table, detail_tables
from turnout.evals.report.texts import TaskText
from turnout.evals.report.told import told_conditions
from turnout.evals.report.words import mode_words, remarks, set_words

__all__ = ["report_body", "report_css", "report_html"]

_MOST_PAIRS = 4
"""Comparisons that get a plot of their own."""


def report_html(report: Report, title: str = "") -> str:
    """Return a whole page: no script, nothing from the network.

    By default its title names the file of tasks, where that is on record.
    """
    sets = dict.fromkeys(each.facts.set_name for each in report.sections if each.facts.set_name)
    title = title or ": ".join(["Evaluation", *([", ".join(sets)] if sets else [])])
    css = f"\n{report_css()}"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_allowed(css)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", text(title)),
        element("style", Html(css)),
    )
    main = element("main", element("h1", text(title)), Html(report_body(report)))
    body = element("body", main, class_="report-page")
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _allowed(css: str) -> str:
    """Return what a browser may do for the page: nothing but use this style sheet."""
    digest = b64encode(sha256(css.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def report_css() -> str:
    """Return the style sheet that `report_body` is made for; every rule is about `.report`."""
    return files("turnout.evals.report.html").joinpath("report.css").read_text(encoding="utf-8")


def report_body(report: Report, link: RunLink | None = None) -> str:
    """Return the report without a page around it, its headings from the second level on.

    All text in it is escaped, and it has neither script nor style attributes. `link` says where
    the page of a run is.
    """
    found = link or _nowhere
    sections = [
        join(_section(section, f"s{place}", _Beside(found, report.texts)))
        for place, section in enumerate(report.sections)
    ]
    empty = [element("p", text("There are no trials."))]
    notes = [element("p", text(note), class_="note") for note in report.notes]
    return element("div", *notes, *(sections or empty), class_="report")


def _nowhere(run_id: RunId) -> None:
    del run_id


@dataclass(frozen=True, slots=True)
class _Beside:
    """What tasks are shown with."""

    link: RunLink
    texts: Mapping[tuple[str, str], TaskText]


def _section(section: Section, prefix: str, beside: _Beside) -> Iterator[Html]:
    anchors = anchors_of(section, prefix)
    heading = f"Tests {section.mode}{', strict' if section.strict else ''}"
    yield element("h2", text(heading))
    yield element("p", text(f"{set_words(section)}. {mode_words(section)}"), class_="note")
    yield table_html(arm_table(section), anchors, heading)
    told = [element("li", text(remark)) for remark in remarks(section)]
    yield element("ul", *told, class_="remarks") if told else Html("")
    yield _facts(section)
    yield element("h3", text("Plots"))
    yield element("div", *map(figure, _plots(section, prefix)), class_="plots")
    yield element("h3", text("Figures"))
    for table in detail_tables(section):
        yield table_html(table, anchors, heading)
    yield element("h3", text("Tasks"))
    yield task_list(section, prefix, beside.link, heading, beside.texts)


def _plots(section: Section, prefix: str) -> Sequence[Plot]:
    if not section.arms:
        return ()
    pairs = [
        paired_plot(section, comparison, f"{prefix}-pair-{place}")
        for place, comparison in enumerate(section.comparisons[:_MOST_PAIRS], 1)
    ]
    plots = (
        rate_plot(section, f"{prefix}-rates"),
        cost_plot(section, f"{prefix}-costs"),
        *pairs,
        difficulty_plot(section, f"{prefix}-difficulty"),
        kind_plot(section, f"{prefix}-kinds"),
        spend_plot(section, f"{prefix}-spend"),
    )
    return tuple(plot for plot in plots if plot is not None)


def _facts(section: Section) -> Html:
    return element(
        "dl",
        *(
            element("div", element("dt", text(name)), element("dd", text(value)))
            for name, value in told_conditions(section)
            if value
        ),
        class_="facts",
    )
