"""The forms that a report is told in: on the screen, as JSON, and in files."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from turnout.cli.options import say_json
from turnout.cli.terminal import safe
from turnout.errors import UsageError
from turnout.evals.report.html.page import report_html
from turnout.evals.report.json import report_json
from turnout.evals.report.markdown import report_markdown
from turnout.evals.report.model import Report
from turnout.evals.report.text import report_text

__all__ = ["file_options", "say_report", "write_report"]

Command = TypeVar("Command", bound=Callable[..., Any])


def file_options(command: Command) -> Command:
    """Add `--html FILE`, `--markdown FILE` and `--brief`."""
    html = click.option(
        "--html",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Write one HTML file with plots; it needs no network and no script.",
    )
    markdown = click.option(
        "--markdown",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Write Markdown, such as for a comment on a change.",
    )
    brief = click.option(
        "--brief", is_flag=True, help="Print the first table and what must be known of it."
    )
    return html(markdown(brief(command)))


def write_report(
    report: Report, html: Path | None, markdown: Path | None, sources: Sequence[Path]
) -> None:
    """Write the files that were asked for, over those that are there, but over no source."""
    for path, render in ((html, report_html), (markdown, report_markdown)):
        if path is None:
            continue
        if path.resolve() in {source.resolve() for source in sources}:
            raise UsageError(f"{path} is what the report is made of.", mend="Name another file.")
        try:
            path.write_text(render(report), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}.") from error
        click.echo(safe(f"Written: {path}"), err=True)


def say_report(report: Report, *, brief: bool, as_json: bool) -> None:
    """Print a report, whole or its first table alone."""
    if as_json:
        say_json(report_json(report))
    else:
        click.echo(safe(report_text(report, details=not brief)))
