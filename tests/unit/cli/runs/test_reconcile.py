"""`turnout runs reconcile`, on a database that runs and a gateway have left."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.samples import ENDED, NOON, STARTED, receipt

from turnout.cli.main import command
from turnout.store.database import open_database
from turnout.store.receipts import ReceiptsStore
from turnout.store.record import RecordStore


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Make a state folder: a run whose call is on a receipt alone, and one without any."""

    async def fill() -> None:
        async with open_database(tmp_path / "turnout.db") as database:
            records = RecordStore(database)
            for name in ("run-aa", "run-bb"):
                await records.begin(name, STARTED, NOON)
                await records.append(name, 1, ENDED, NOON)
            await ReceiptsStore(database).add(receipt("req-1", session="run-aa", key="agent"))

    asyncio.run(fill())
    return tmp_path


def reconcile(home: Path, *options: str) -> tuple[int, str]:
    """Run the command and return its exit code and what it printed."""
    done = CliRunner().invoke(
        command,
        ["runs", "reconcile", *options],
        env={"TURNOUT_HOME": str(home)},
        standalone_mode=False,
    )
    assert isinstance(done.return_value, int), done.output or done.exception
    return done.return_value, done.output


def test_a_difference_is_shown_and_then_there_is_none(home: Path) -> None:
    """With both amounts and the request; from then on the record says the same."""
    code, said = reconcile(home, "run-a")
    cost = receipt().cost_micros
    assert code == 1
    assert f"{cost / 1e6:.6f}".rstrip("0") in said
    assert "$0.00 on record; the record was put right." in said
    assert "req-1: not on record: receipt" in said
    assert reconcile(home, "run-a") == (0, f"run-aa: ${cost / 1e6:g} by receipts and on record.\n")


def test_scripts_get_one_object(home: Path) -> None:
    """Amounts in micro-dollars; without writing, the difference stays."""
    for _ in range(2):
        code, said = reconcile(home, "run-a", "--dry-run", "--json")
        (run,) = json.loads(said)["runs"]
        assert (code, run["recorded_micros"], run["charged_micros"]) == (
            1,
            0,
            receipt().cost_micros,
        )
        assert (run["agrees"], run["corrected"], run["ended"]) == (False, False, True)
        assert [each["why"] for each in run["differences"]] == ["not_on_record"]


def test_all_runs_are_compared_and_those_that_differ_are_named(home: Path) -> None:
    """What agrees is a number."""
    code, said = reconcile(home, "--all")
    assert (code, said.splitlines()[-1]) == (1, "2 runs compared, 1 differed.")
    assert "run-bb" not in said
    assert reconcile(home, "--all") == (0, "2 runs compared, 0 differed.\n")
