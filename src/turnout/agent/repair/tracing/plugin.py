"""A pytest plugin, run inside: how many failed and passed tests have run each line.

Loaded by `-p turnout_trace` from the folder that it lies in. It leaves `trace.json` beside itself:
`{"failed": N, "passed": N, "files": {PATH: {LINE: [FAILED, PASSED]}}}`, paths relative to the
folder in which pytest started. What is beneath hidden or installed folders is not counted.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

__all__ = ["Tracer", "pytest_configure"]

RESULT = "trace.json"
CHOSEN = "chosen.json"
"""The tests to be traced, a list; what a command names beside them, such as the folder of all
tests, is not run."""
MOST_LINES = 20_000
"""Lines of one test that are noted."""
DESCRIBING = ("/_pytest/assertion/", "/_pytest/_io/", "/reprlib.py", "/pprint.py")
"""Where pytest describes what was not as asserted: what that runs has failed no test."""


class Tracer:
    """Traces each test, its fixtures included, and writes what is known after each failure."""

    def __init__(self, folder: Path, root: Path) -> None:
        self._path = folder / RESULT
        self._root = root
        self._known: dict[str, str] = {}
        self._lines: set[tuple[str, int]] = set()
        self._bad: set[str] = set()
        self._counts: dict[str, dict[int, list[int]]] = {}
        self._totals = [0, 0]
        self._describing: FrameType | None = None
        threading.settrace(self._called)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, None]:
        """Trace one test from its first fixture to its last."""
        self._lines, self._describing = set(), None
        before = sys.gettrace()
        sys.settrace(self._called)
        try:
            yield
        finally:
            sys.settrace(before)
        failed = item.nodeid in self._bad
        self._count(failed=failed)
        if failed:
            self._write()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure."""
        if report.outcome == "failed":
            self._bad.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write what is known at the end."""
        self._write()

    def _called(self, frame: FrameType, _event: str, _arg: object) -> Any:
        if self._describing is not None:
            return None
        name = frame.f_code.co_filename
        if name not in self._known:
            self._known[name] = self._relative(name)
        if not self._known[name]:
            return None
        caller = frame.f_back.f_code.co_filename if frame.f_back else ""
        if any(part in caller for part in DESCRIBING):
            self._describing = frame
            return self._described
        return self._line

    def _described(self, frame: FrameType, event: str, _arg: object) -> Any:
        if event == "return" and frame is self._describing:
            self._describing = None
        return self._described

    def _line(self, frame: FrameType, event: str, _arg: object) -> Any:
        if len(self._lines) >= MOST_LINES:
            return None
        if event == "line":
            self._lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self._line

    def _relative(self, name: str) -> str:
        """Return a path of the workspace; empty for what is not to be traced."""
        path = Path(name).resolve()
        if not path.is_relative_to(self._root):
            return ""
        inside = path.relative_to(self._root)
        skipped = any(part == "site-packages" or part.startswith(".") for part in inside.parts)
        return "" if skipped else inside.as_posix()

    def _count(self, *, failed: bool) -> None:
        at = 0 if failed else 1
        self._totals[at] += 1
        for name, line in self._lines:
            counts = self._counts.setdefault(self._known[name], {}).setdefault(line, [0, 0])
            counts[at] += 1

    def _write(self) -> None:
        failed, passed = self._totals
        told = {"failed": failed, "passed": passed, "files": self._counts}
        self._path.write_text(json.dumps(told), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Start to trace what was chosen."""
    folder = Path(__file__).resolve().parent
    chosen = frozenset(json.loads((folder / CHOSEN).read_text(encoding="utf-8")))
    config.args = [argument for argument in config.args if argument in chosen] or config.args
    tracer = Tracer(folder, Path.cwd().resolve())
    config.pluginmanager.register(tracer, "turnout_tracer")
