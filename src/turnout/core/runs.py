"""How a run ends and what is said about its result."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import ConfigDict

from turnout.core.ids import RunId

__all__ = [
    "Connection",
    "FileChange",
    "Outcome",
    "Patch",
    "RunRow",
    "RunState",
    "TestReport",
    "Verdict",
    "VerdictName",
]

Outcome = Literal["answered", "step_limit", "capped", "refused", "stuck", "cancelled", "failed"]
"""Why a run ended."""

VerdictName = Literal["resolved", "no_regression", "not_resolved", "no_tests", "tests_touched"]
"""What our own test runs say about the patch."""


RunState = Literal["queued", "running", "waiting", "ended"]
"""queued: a segment of it may begin; running: a worker has it; waiting: for a person; ended."""


@dataclass(frozen=True, slots=True)
class TestReport:
    """One run of the tests by us, in the workspace."""

    __test__ = False

    command: str
    exit_code: int | None
    """None where a signal or a time-out ended it."""
    passed: tuple[str, ...]
    """Node ids that passed; empty where the runner reports none."""
    failed: tuple[str, ...]
    """Node ids that failed or could not be collected."""
    seconds: float
    output: str
    """What the runner printed, head and tail kept."""
    timed_out: bool = False
    found: bool = True
    """False where the repository has no tests that this command finds."""

    @property
    def ok(self) -> bool:
        """True where tests were found and all of them passed."""
        return self.found and not self.timed_out and self.exit_code == 0 and not self.failed


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection that something in a sandbox asked the host's proxy for."""

    host: str
    """As it was asked for; at most 253 characters."""
    port: int
    allowed: bool
    reason: str
    """Why it was refused or how it failed; empty where it was served."""
    sent_bytes: int = 0
    received_bytes: int = 0
    secrets: tuple[str, ...] = ()
    """Variables of the secrets that were put in."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """One path that a patch changes."""

    path: str
    """Relative to the repository; bytes that are no UTF-8 appear as backslash escapes."""
    status: Literal["added", "modified", "deleted", "type_changed"]
    added_lines: int | None
    """None for a binary file."""
    deleted_lines: int | None


@dataclass(frozen=True, slots=True)
class Patch:
    """Unified diff of a workspace against its base commit."""

    __pydantic_config__ = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    diff: bytes
    """What `git apply` takes; empty where nothing changed."""
    files: tuple[FileChange, ...]
    excluded: tuple[str, ...] = ()
    """New paths left out: caches, environments, what was installed, large files, what is ignored
    and not staged, names that stand for `.git` elsewhere, and what lies in a repository or
    submodule of its own."""

    def __bool__(self) -> bool:
        return bool(self.diff)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What our own test runs, before and after, say about a patch."""

    name: VerdictName
    failed_before: bool | None
    """Whether any test failed at base; None where none could be run."""
    passes_after: bool | None
    """Whether all tests pass with the patch; None where none could be run."""
    tests_untouched: bool
    touched: tuple[str, ...] = ()
    """Existing test files that the patch alters or deletes."""
    detail: str = ""
    """One sentence for people."""
    new_tests: tuple[str, ...] = ()
    """Test files that the patch adds: not held against it, and no proof of it either."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """One line of the list of runs."""

    run_id: RunId
    prompt: str
    repository: str
    base_commit: str
    started_at: datetime
    ended_at: datetime | None
    outcome: Outcome | None
    """None while the run is going on."""
    verdict: VerdictName | None
    epoch: int
    state: RunState | None = None
    """Where a run of the service stands; None for one that a command works on itself."""
