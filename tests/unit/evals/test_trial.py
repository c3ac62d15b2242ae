"""One run on one instance, with a scripted service and a scripted sandbox."""

import subprocess
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from turnout.core.events import Entry, PatchMade, RunEnded, RunStarted
from turnout.core.ids import RunId
from turnout.core.runs import Patch
from turnout.core.tasks import Task
from turnout.errors import ModelUnavailableError, RepositoryError
from turnout.evals.grade import Grader
from turnout.evals.instances import Instance
from turnout.evals.trial import Trials
from turnout.runs.stop import Stop
from turnout.runs.summary import RunResult, fold
from turnout.sandbox.base import Limits
from turnout.testing.sandbox import ScriptedDriver

INSTANCE = Instance(
    "one",
    "add is wrong",
    "",
    "HEAD",
    {"a/b.py": "x\n"},
    {"t.py": ""},
    "",
    (),
    (),
    "pytest",
    None,
    "d",
)

NO_PATCH = Patch(b"", ())


class Service:
    """Ends every run as told, and keeps the tasks that it was given."""

    def __init__(self, *, failure: Exception | None = None, patch: Patch = NO_PATCH) -> None:
        self.tasks: list[Task] = []
        self._failure = failure
        self._patch = patch

    async def run(
        self, task: Task, stop: Stop | None = None
    ) -> AsyncGenerator[Entry | RunResult, None]:
        """Yield a short record and its result."""
        self.tasks.append(task)
        if self._failure is not None:
            raise self._failure
        events = (
            RunStarted(task, "c0ffee", "repair"),
            PatchMade(self._patch),
            RunEnded("step_limit", "No candidate passed."),
        )
        at = datetime(2026, 1, 1, tzinfo=UTC)
        entries = [Entry(RunId("run-1"), n, at, event) for n, event in enumerate(events, 1)]
        for entry in entries:
            yield entry
        yield fold(entries)


def trials(service: Service, folder: Path, driver: ScriptedDriver | None = None) -> Trials:
    """Return trials of a service."""
    return Trials(service, Grader(driver or ScriptedDriver(), Limits(), test_timeout=9), folder)


def head(repository: str) -> bytes:
    """Return the commit of a repository."""
    git = ["git", "-C", repository, "rev-parse", "HEAD"]
    return subprocess.run(git, check=True, capture_output=True, timeout=30).stdout


def names(folder: Path) -> list[str]:
    """Return what is in a folder."""
    return [path.name for path in folder.iterdir()]


async def test_a_run_that_ends_without_a_patch_is_a_result(tmp_path: Path) -> None:
    """Its stop is on it."""
    shown: list[Entry] = []
    trial = await trials(Service(), tmp_path).run(INSTANCE, shown.append)
    assert (trial.grade, trial.outcome, trial.reason) == (
        "no_patch",
        "step_limit",
        "No candidate passed.",
    )
    assert trial.run_id == "run-1"
    assert len(shown) == 3


async def test_an_instance_that_brings_its_tree_becomes_a_repository(tmp_path: Path) -> None:
    """Of one commit that is the same every time; no hidden test is in it."""
    service = Service()
    await trials(service, tmp_path / "a").run(INSTANCE, lambda _: None)
    await trials(service, tmp_path / "b").run(INSTANCE, lambda _: None)
    heads = [head(task.repository) for task in service.tasks]
    assert heads[0] == heads[1]
    root = Path(service.tasks[0].repository)
    assert (root / "a/b.py").read_text() == "x\n"
    assert not (root / "t.py").exists()
    assert service.tasks[0].prompt == "add is wrong"
    assert service.tasks[0].test_command == "pytest"


async def test_an_instance_of_a_repository_starts_from_its_commit(tmp_path: Path) -> None:
    """Nothing is made."""
    service = Service()
    instance = replace(INSTANCE, repository="/srv/clone", base_commit="abc", files={})
    await trials(service, tmp_path).run(instance, lambda _: None)
    assert (service.tasks[0].repository, service.tasks[0].base) == ("/srv/clone", "abc")
    assert not names(tmp_path)


async def test_a_repository_is_set_up_and_graded_as_the_settings_say(tmp_path: Path) -> None:
    """An instance that brings its own tree is not: nobody wrote a command for it."""
    driver = ScriptedDriver()
    service = Service(patch=Patch(b"--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n", ()))
    grader = Grader(driver, Limits(), test_timeout=9)
    subject = Trials(service, grader, tmp_path, setup="make ready")
    instance = replace(INSTANCE, repository="/srv/clone", base_commit="abc", files={})
    await subject.run(instance, lambda _: None)
    await subject.run(INSTANCE, lambda _: None)
    assert [task.setup for task in service.tasks] == ["make ready", None]
    assert [spec.setup for spec in driver.prepared] == ["make ready", None]


async def test_a_repository_that_cannot_be_used_is_infrastructure(tmp_path: Path) -> None:
    """The other instances can still be run."""
    service = Service(failure=RepositoryError("no such commit"))
    trial = await trials(service, tmp_path).run(INSTANCE, lambda _: None)
    assert (trial.grade, trial.run_id, trial.outcome) == ("infrastructure", None, None)
    assert "no such commit" in trial.detail


async def test_an_environment_that_is_not_fit_ends_the_evaluation(tmp_path: Path) -> None:
    """Every other instance would meet the same."""
    service = Service(failure=ModelUnavailableError("no model"))
    with pytest.raises(ModelUnavailableError):
        await trials(service, tmp_path).run(INSTANCE, lambda _: None)
