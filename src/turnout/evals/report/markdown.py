"""A report as Markdown, for a comment on a change."""

import re
from collections.abc import Iterator
from typing import Final

from turnout.evals.report.model import Report, Section
from turnout.evals.report.plain import plain
from turnout.evals.report.tables import Table, arm_table, detail_tables
from turnout.evals.report.told import conditions_table
from turnout.evals.report.words import mode_words, remarks, set_words

__all__ = ["report_markdown"]

_MARKS: Final = re.compile(r"([\\`*_\[\]|~<>&#])")
_MOST_ROWS: Final = 50
"""Of one table."""
_LARGEST: Final = 60_000
"""Characters of it all: forges take no comment that is much longer."""


def report_markdown(report: Report) -> str:
    """Return the report in GitHub's Markdown, details folded; no text in it can leave its place."""
    lines = ["## Evaluation"]
    lines += [line for note in report.notes for line in ("", _words(note))]
    size = 0
    for part in (part for section in report.sections for part in _section(section)):
        size += len(part) + 1
        if size > _LARGEST:
            lines += ["", "The rest is in the whole report."]
            break
        lines.append(part)
    if not report.sections:
        lines += ["", "There are no trials."]
    return "\n".join(lines) + "\n"


def _section(section: Section) -> Iterator[str]:
    yield ""
    yield f"{_words(set_words(section))}. {mode_words(section)}"
    yield ""
    yield from _table(arm_table(section))
    yield ""
    for remark in remarks(section):
        yield f"- {_words(remark)}"
    for table in (*detail_tables(section), conditions_table(section)):
        yield "\n".join(_folded(table))


def _folded(table: Table) -> Iterator[str]:
    yield ""
    yield f"<details><summary>{table.title}</summary>"
    yield ""
    yield from _table(table)
    if table.note:
        yield ""
        yield _words(table.note)
    yield ""
    yield "</details>"


def _table(table: Table) -> Iterator[str]:
    yield _row(_words(head) for head in table.heads)
    yield _row("---" if at < table.left else "---:" for at in range(len(table.heads)))
    for row in table.rows[:_MOST_ROWS]:
        yield _row(_code(cell) if at < table.left else _words(cell) for at, cell in enumerate(row))
    if len(table.rows) > _MOST_ROWS:
        yield ""
        yield f"{len(table.rows) - _MOST_ROWS} more rows are in the whole report."


def _row(cells: Iterator[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _words(text: str) -> str:
    """Return text in one line, of which nothing is taken for a mark."""
    return _MARKS.sub(r"\\\1", _line(text))


def _code(text: str) -> str:
    """Return text as code, in which neither marks nor names of people mean anything."""
    line = _line(text).replace("|", "\\|")
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    edge = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{edge}{line}{edge}{fence}" if line else ""


def _line(text: str) -> str:
    return plain(" ".join(text.split()))
