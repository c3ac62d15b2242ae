"""Evaluations for benches: the real command on a set, with models whose results are known."""

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from json import dumps
from pathlib import Path

from children import bound
from turnout.evals.trials.model import Trial
from turnout.evals.trials.store import Results, read_trials
from turnout.store.database import open_database
from turnout.store.record import RecordStore
from turnout.testing.evaluating.solvers import do_nothing, knowing
from turnout.testing.model_server import ScriptedModelServer
from turnout.testing.recorded import RecordedRequest
from turnout.testing.turns import Turn

__all__ = ["ARMS", "Set", "open_folder", "open_set", "tiny_rows"]

ARMS = ("model:gold", "model:idle")
_MOST_RUNS = 10_000

Solver = Callable[[RecordedRequest], Turn]
_SOURCE = """\
def page(items, number, size):
    start = number * size
    return items[start : start + size]
"""
_TEST = """\
from pages import page


def test_no_items():
    assert page([], 1, 1) == []
"""
_HIDDEN = """\
from pages import page


def test_the_second_page():
    assert page([1, 2, 3, 4, 5], 2, 2) == [3, 4]
"""
_FIX = """\
--- a/pages.py
+++ b/pages.py
@@ -1,3 +1,3 @@
 def page(items, number, size):
-    start = number * size
+    start = (number - 1) * size
     return items[start : start + size]
"""


def tiny_rows(count: int) -> tuple[str, dict[str, str]]:
    """Return a file of so many instances of a few lines, and the fix of each by its task."""
    rows, fixes = [], {}
    for number in range(count):
        task = f"Task {number:03}: the first page is skipped, pages count from 1."
        fixes[task] = _FIX
        row = {
            "instance_id": f"tiny-{number:03}",
            "problem_statement": task,
            "files": {"pages.py": _SOURCE, "tests/test_pages.py": _TEST},
            "hidden_tests": {"tests/test_hidden.py": _HIDDEN},
            "FAIL_TO_PASS": ["tests/test_hidden.py::test_the_second_page"],
            "test_command": "python -m pytest -q",
            "python_requirements": [],
        }
        rows.append(f"{dumps(row)}\n")
    return "".join(rows), fixes


@dataclass(frozen=True, slots=True)
class Set:
    """A set in a folder of its own, and the server of its two models."""

    folder: Path
    server: ScriptedModelServer
    asked: asyncio.Event
    """Set with each request for a model."""

    async def start(self, *options: str) -> asyncio.subprocess.Process:
        """Start the command on the set, in a process group of its own; it is killed with us."""
        arms = [word for arm in ARMS for word in ("--arm", arm)]
        asked = ["eval", "run", "tasks.jsonl", "--json", *arms, *options]
        environment = {
            "PATH": os.defpath,
            "LANG": "C.UTF-8",
            "TURNOUT_HOME": str(self.folder / "home"),
            "LLM_BASE_URL": self.server.base_url,
            "LLM_API_KEY": "none",
        }
        with (self.folder / "said.txt").open("ab") as said:
            return await asyncio.create_subprocess_exec(
                *bound((sys.executable, "-m", "turnout", *asked), "KILL"),
                cwd=self.folder,
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
            )

    async def run(self, *options: str, seconds: float) -> int:
        """Run it to its end and return its exit code; `TimeoutError` where it takes longer."""
        process = await self.start(*options)
        try:
            async with asyncio.timeout(seconds):
                return await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    @property
    def results(self) -> Path:
        """Where its results are."""
        return self.folder / "tasks.results.jsonl"

    def trials(self) -> tuple[Trial, ...]:
        """Return the newest result of every unit."""
        return read_trials(self.results)

    def rows(self) -> tuple[Trial, ...]:
        """Return every result."""
        return Results(self.results).rows

    async def run_ids(self) -> Sequence[str]:
        """Return every run that is on record."""
        async with open_database(self.folder / "home" / "turnout.db") as database:
            return [row.run_id for row in await RecordStore(database).rows(limit=_MOST_RUNS)]


@contextmanager
def open_folder() -> Iterator[Path]:
    """Make a folder that the users of sandboxes may pass through; it is gone at the end."""
    with tempfile.TemporaryDirectory(prefix="turnout-bench-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o711)
        yield Path(name)


@asynccontextmanager
async def open_set(rows: str, fixes: dict[str, str]) -> AsyncIterator[Set]:
    """Write a set into a new folder and serve its models; both are gone at the end."""
    with open_folder() as folder:
        asked = asyncio.Event()

        def heard(script: Solver) -> Solver:
            def answer(request: RecordedRequest) -> Turn:
                asked.set()
                return script(request)

            return answer

        (folder / "tasks.jsonl").write_text(rows)
        scripts = {"gold": heard(knowing(fixes)), "idle": heard(do_nothing)}
        async with ScriptedModelServer(scripts) as server:
            yield Set(folder, server, asked)
