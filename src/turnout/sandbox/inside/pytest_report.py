"""A pytest plugin that tells us what became of each test, one JSON object a line.

It reports only where the folder `FOLDER` exists, and only the outermost session does: a session
that starts while another's report is unfinished was started by a test. Each line is one of
`{"started": …}`, `{"id": …, "outcome": …}` and `{"finished": exit status}`.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

__all__ = [
    "FOLDER",
    "Reporter",
    "pytest_configure",
    "unfinished",
]

FOLDER = "/tmp/turnout-report"
LAST = '{"finished"'


def unfinished(folder: str) -> bool:
    """Say whether a session is still reporting."""
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
        if not lines or not lines[-1].startswith(LAST):
            return True
    return False


class Reporter:
    """Writes a line as soon as something is known, so that a session cut short is told too."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)
        self._write({"started": os.getpid()})

    def _write(self, facts: dict[str, object]) -> None:
        os.write(self._descriptor, json.dumps(facts).encode() + b"\n")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tell how a phase of a test ended."""
        if report.when == "call" or report.outcome != "passed":
            self._write({"id": report.nodeid, "outcome": report.outcome})

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Tell of a file that cannot be collected."""
        if report.outcome == "failed":
            self._write({"id": report.nodeid, "outcome": "failed"})

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Tell that the session came to its end."""
        self._write({"finished": int(exitstatus)})


def pytest_configure(config: pytest.Config) -> None:
    """Start to report, where we are asked to."""
    if hasattr(config, "workerinput") or not os.path.isdir(FOLDER) or unfinished(FOLDER):
        return
    path = os.path.join(FOLDER, f"{len(os.listdir(FOLDER))}.jsonl")
    config.pluginmanager.register(Reporter(path), "turnout_reporter")
