"""Results of evaluations on disk, and the reports that they make."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode

from turnout.core.ids import RunId
from turnout.core.service.turns import EVALUATIONS
from turnout.core.text import visible
from turnout.errors import ConfigError, NotFoundError
from turnout.evals.report.figures import summarise
from turnout.evals.report.html.page import report_body
from turnout.evals.report.read import Kept, read_kept
from turnout.evals.trials.model import Trial
from turnout.evals.trials.store import read_results
from turnout.web.console.visits import BASE

__all__ = ["ReportBody", "Results", "ResultsFolder"]

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}\.jsonl?", re.ASCII)
_LARGEST: Final = 128 * 2**20
_MOST_FILES: Final = 200
_DIGEST: Final = 12


@dataclass(frozen=True, slots=True)
class ReportBody:
    """A report as it stands in a page: markup that was put together of escaped parts."""

    markup: str

    def __html__(self) -> str:
        """Return it for a template, every character of it to be seen."""
        return visible(self.markup)


@dataclass(frozen=True, slots=True)
class Results:
    """A file of results."""

    name: str
    at: datetime
    """When it was written last."""
    size: int


class ResultsFolder:
    """The files of results that are looked at in the console; reading them takes a while."""

    def __init__(self, folder: Path) -> None:
        """Look into `folder`, which need not be there."""
        self.folder = folder

    def all(self) -> Sequence[Results]:
        """Return the files, the newest first, as many as a page may list."""
        if not self.folder.is_dir():
            return ()
        found = [
            Results(path.name, datetime.fromtimestamp(state.st_mtime, UTC), state.st_size)
            for path in self.folder.iterdir()
            if _NAME.fullmatch(path.name) and path.is_file()
            for state in [path.stat()]
        ]
        return sorted(found, key=lambda one: one.at, reverse=True)[:_MOST_FILES]

    def report(self, name: str) -> "ReportBody":
        """Return the report of a file, to stand in a page; all text in it is escaped and seen.

        `NotFoundError` for a file that is not listed, `ConfigError` for one of no results.
        """
        kept = read_kept(self._path(name))
        trials = kept.trials
        projects = {t.run_id: _project(t) for t in trials if t.run_id is not None}

        def link(run: RunId) -> str | None:
            project = projects.get(run)
            if project is None:
                return None
            return f"{BASE}/runs/{quote(run, safe='')}?{urlencode({'project': project})}"

        body = report_body(summarise(trials, conditions=kept.conditions), link)
        return ReportBody(body)

    def results(self, name: str) -> Kept:
        """Return the newest trials of a file and their conditions; the errors of `report`."""
        found = read_results(self._path(name))
        return Kept(found.trials, found.conditions)

    def _path(self, name: str) -> Path:
        path = self.folder / name
        if not _NAME.fullmatch(name) or not path.is_file():
            raise NotFoundError(f"There are no results {name[:200]!r}.")
        if path.stat().st_size > _LARGEST:
            raise ConfigError(
                f"{name} is larger than {_LARGEST >> 20} MiB.",
                mend="Make its report with `turnout eval report`.",
            )
        return path


def _project(trial: Trial) -> str:
    return f"{EVALUATIONS}{trial.arm_digest[:_DIGEST]}"
