"""`turnout runs export` and `turnout webhooks secret`, in this process."""

import asyncio
import base64
import json
from pathlib import Path

import pytest
from tests.samples import NOON
from tests.unit.runs.parts import PATCH
from tests.unit.runs.test_summary import STARTED

from turnout.cli.main import run
from turnout.core.events import PatchMade, RunEnded
from turnout.core.ids import RunId
from turnout.store.database import open_database
from turnout.store.record import RecordStore
from turnout.wiring.state import DATABASE

RUN = RunId("run-0123456789ab")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a state folder with the record of one run, and work in an empty folder."""
    monkeypatch.setenv("TURNOUT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TURNOUT_SERVER", raising=False)
    (tmp_path / "home").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    async def fill() -> None:
        async with open_database(tmp_path / "home" / DATABASE) as database:
            store = RecordStore(database)
            await store.begin(RUN, STARTED, NOON)
            for event in (PatchMade(PATCH), RunEnded("answered", "Done.")):
                await store.append(RUN, 1, event, NOON)

    asyncio.run(fill())
    return tmp_path / "here"


def test_a_run_is_printed_or_written_as_one_document(home: Path, capsys) -> None:
    """The newest where none is named; a file that is there stays as it is."""
    assert run(["runs", "export"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["schema_version"], told["session_id"]) == ("ATIF-v1.7", RUN)
    asked = ["runs", "export", "run-01", "--format", "turnout", "--output", "run.json"]
    assert run(asked) == 0
    written = (home / "run.json").read_text()
    assert json.loads(written)["entries"][-1]["event"]["type"] == "run_ended"
    assert run(asked) == 2
    assert "cannot be written" in capsys.readouterr().err
    assert (home / "run.json").read_text() == written


def test_the_secret_of_a_project_follows_from_that_of_the_service(
    home: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It differs from all others, and is in the form that libraries take."""
    asked = ["webhooks", "secret", "--project", "web"]
    assert run(asked) == 2
    assert "sends no notifications" in capsys.readouterr().err
    (home / "turnout.toml").write_text('[service.notify]\nsecret_env = "HOOKS"\n')
    assert run(asked) == 2
    assert "HOOKS is not set" in capsys.readouterr().err
    monkeypatch.setenv("HOOKS", "of-the-service")
    assert run(asked) == 0
    mine = capsys.readouterr().out.strip()
    assert len(base64.b64decode(mine.removeprefix("whsec_"))) == 32
    assert "of-the-service" not in mine
    assert run(["webhooks", "secret", "--project", "red", "--json"]) == 0
    other = json.loads(capsys.readouterr().out)
    assert (other["project"], other["secret"] == mine) == ("red", False)
