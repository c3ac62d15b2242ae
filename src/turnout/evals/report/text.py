"""A report for a terminal."""

from collections.abc import Iterator
from textwrap import wrap

from turnout.evals.report.model import Report, Section
from turnout.evals.report.tables import Table, arm_table, detail_tables, task_grade
from turnout.evals.report.told import conditions_table
from turnout.evals.report.words import mode_words, remarks, set_words

__all__ = ["report_text"]

_WIDTH = 100


def report_text(report: Report, *, details: bool = True) -> str:
    """Return the figures for people; without `details`, the first table and what must be known.

    Names are as the results have them: who prints it makes it safe for the terminal.
    """
    if not report.sections:
        return "There are no trials."
    notes = ["\n".join(_wrapped(note)) for note in report.notes]
    sections = ["\n".join(_section(each, details=details)) for each in report.sections]
    return "\n\n".join([*notes, *sections])


def _section(section: Section, *, details: bool) -> Iterator[str]:
    yield set_words(section)
    yield mode_words(section)
    yield ""
    yield from _table(arm_table(section))
    for remark in remarks(section):
        yield ""
        yield from _wrapped(remark)
    for table in detail_tables(section) if details else ():
        yield ""
        yield table.title
        yield from _table(table)
    if details:
        yield ""
        yield "Every task"
        yield from _table(_tasks(section))
        yield ""
        yield from _conditions(section)


def _conditions(section: Section) -> Iterator[str]:
    """Yield what the trials were made under, a line or more each."""
    table = conditions_table(section)
    yield table.title
    width = max(len(name) for name, _ in table.rows)
    for name, value in table.rows:
        first, *others = _wrapped(value, _WIDTH - width - 2) or [""]
        yield f"{name:{width}}  {first}".rstrip()
        yield from (f"{'':{width}}  {line}" for line in others)


def _wrapped(text: str, width: int = _WIDTH) -> list[str]:
    return wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _tasks(section: Section) -> Table:
    return Table(
        "Every task",
        ("instance", *(arm.name for arm in section.arms)),
        tuple(
            (task.instance_id, *(task_grade(task.of(arm.name)) for arm in section.arms))
            for task in section.tasks
        ),
        left=1 + len(section.arms),
    )


def _table(table: Table) -> Iterator[str]:
    rows = [table.heads, *table.rows]
    widths = [max(len(row[at]) for row in rows) for at in range(len(table.heads))]
    for row in rows:
        cells = [
            cell.ljust(width) if at < table.left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
