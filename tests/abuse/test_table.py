"""The whole table on every kind of sandbox, for root and for an ordinary user."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import BaseModel
from tests.abuse.ordinary import as_ordinary_user, fresh_uid
from tests.abuse.rows import ROWS
from tests.abuse.table import SECRET, complaint
from tests.images.debian import require_image
from tests.overdue import unbounded

pytestmark = pytest.mark.abuse

ROOT = Path(__file__).parents[2]
KINDS = ("bubblewrap as root", "bubblewrap as a user", "container")
HARMLESS = [number for number, row in ROWS.items() if row.harmless]
SECONDS = 180
"""For all rows of a kind."""


class Report(BaseModel):
    """What the program that tries the rows said of one of them."""

    row: int
    seen: str
    alive: bool
    seconds: float


@dataclass(frozen=True)
class Trial:
    """What was seen of one kind."""

    reports: Mapping[int, Report]
    said: str
    """All that was printed, for people."""


def program_of(kind: str, folder: Path, state: Path, numbers: Iterable[int]) -> list[str]:
    """Return the command that tries rows; skips where it cannot be."""
    name, _, who = kind.partition(" as ")
    if name == "container":
        require_image()
    program = [
        sys.executable,
        "-m",
        "tests.abuse.runner",
        name,
        str(state),
        str(folder / "outside"),
    ]
    program += map(str, numbers)
    if os.geteuid() != 0:
        if who == "root":
            pytest.skip("only root can start sandboxes as root")
        return program
    if who != "a user":
        return program
    uid = fresh_uid()
    for path in (folder, state):
        os.chown(path, uid, uid)
    wrapped = as_ordinary_user(uid, program, [ROOT, folder])
    return wrapped or pytest.skip("there are no `unshare` and `setpriv` to become another user")


def tried(kind: str, state: Path | None, numbers: Iterable[int]) -> Trial:
    """Try rows in a process of its own, whose environment has a secret."""
    # Not in /tmp, which even a sandbox without walls has of its own.
    folder = Path(tempfile.mkdtemp(prefix="turnout-abuse-", dir="/var/tmp"))
    folder.chmod(0o711)
    own = folder / "state"
    own.mkdir()
    settings = (f"HOST_SECRET={SECRET}", f"HOME={folder}", f"PYTHONPATH={ROOT}")
    try:
        program = ["env", *settings, *program_of(kind, folder, state or own, numbers)]
        with unbounded():
            done = subprocess.run(
                program,
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=False,
                timeout=SECONDS,
            )
    finally:
        shutil.rmtree(folder)
    lines = done.stdout.splitlines()
    if lines and lines[0].startswith('{"unavailable"'):
        pytest.skip(lines[0])
    reports = [Report.model_validate_json(line) for line in lines if line.startswith('{"row"')]
    return Trial({report.row: report for report in reports}, f"{done.stdout[-2000:]}{done.stderr}")


@pytest.fixture(scope="module", params=KINDS)
def trial(request: pytest.FixtureRequest, sandbox_state: Path) -> Trial:
    """Try every row once on a kind."""
    if request.param == "container":
        require_image()
    numbers = [number for number, row in ROWS.items() if os.uname().machine in row.machines]
    ordinary = request.param == "bubblewrap as a user"
    return tried(request.param, None if ordinary else sandbox_state, numbers)


@pytest.mark.parametrize("number", ROWS)
def test_the_walls_hold(trial: Trial, number: int) -> None:
    """The attempt was made, came to nothing, and the sandbox runs commands afterwards."""
    row = ROWS[number]
    if os.uname().machine not in row.machines:
        pytest.skip(f"{row.name}: cannot be tried on {os.uname().machine}")
    assert number in trial.reports, trial.said
    report = trial.reports[number]
    assert not complaint(row, report.seen), (row.name, report.seen)
    assert report.alive, (row.name, report.seen)


def test_the_table_has_every_row() -> None:
    """Numbers are those of the table, each there once."""
    assert list(ROWS) == list(range(1, 67))


@pytest.mark.parametrize("number", ROWS)
def test_a_missing_wall_would_be_seen(number: int) -> None:
    """What an open wall shows is complained about, and so is an attempt that showed nothing."""
    row = ROWS[number]
    assert complaint(row, row.without)
    assert complaint(row, "")
    assert complaint(row, "SandboxDiedError: The sandbox is gone: its agent ended.")


def test_attempts_come_to_something_where_there_are_no_walls(sandbox_state: Path) -> None:
    """The harmless ones, tried by the same program outside every sandbox, are complained about."""
    trial = tried("none", sandbox_state, HARMLESS)
    assert set(trial.reports) == set(HARMLESS), trial.said
    for number, report in trial.reports.items():
        assert complaint(ROWS[number], report.seen), (ROWS[number].name, report.seen)
