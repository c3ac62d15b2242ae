"""Tables of a report as HTML that scrolls inside its own box where the page is narrow."""

from collections.abc import Mapping

from turnout.evals.report.html.markup import Html, element, join, text
from turnout.evals.report.tables import Table

__all__ = ["table_html"]


def table_html(table: Table, anchors: Mapping[str, str], among: str) -> Html:
    """Return a table; a first cell that `anchors` has an id for leads to it.

    `among` is the heading that it stands under, which tells it from others of its name.
    """
    heads = [
        element("th", text(head), scope="col", class_=_side(table, at))
        for at, head in enumerate(table.heads)
    ]
    rows = [element("tr", *_cells(table, row, anchors)) for row in table.rows]
    whole = element(
        "table",
        element("caption", text(table.title)),
        element("thead", element("tr", *heads)),
        element("tbody", *rows),
    )
    box = element(
        "div",
        whole,
        class_="scroll",
        role="region",
        tabindex=0,
        aria_label=f"{table.title}: {among}",
    )
    note = element("p", text(table.note), class_="note") if table.note else Html("")
    return join([box, note])


def _cells(table: Table, row: tuple[str, ...], anchors: Mapping[str, str]) -> list[Html]:
    first, *others = row
    name = text(first)
    if first in anchors:
        name = element("a", name, href=f"#{anchors[first]}")
    cells = [element("th", name, scope="row")]
    cells += [
        element("td", text(cell), class_=_side(table, at)) for at, cell in enumerate(others, 1)
    ]
    return cells


def _side(table: Table, at: int) -> str | None:
    return None if at < table.left else "figure"
