"""`turnout db` says what is wrong in words and by its exit code."""

import asyncio
import json
from pathlib import Path

import pytest
from sqlalchemy import text

from turnout.cli.main import run
from turnout.store.database import database_at
from turnout.store.schema import HEAD


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an empty state folder the one of the process."""
    monkeypatch.setenv("TURNOUT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TURNOUT_DATABASE", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


def revise(home: Path, revision: str) -> None:
    """Have the tables named as those of another version."""

    async def work() -> None:
        database = database_at(home / "turnout.db")
        statement = text("UPDATE alembic_version SET version_num = :revision")
        await database.write(lambda conn: conn.execute(statement, {"revision": revision}))
        await database.close()

    asyncio.run(work())


def test_a_database_is_made_looked_at_and_copied(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each by one command; the copy is one file, and is not written over."""
    assert run(["db", "status"]) == 0
    assert "has no tables yet" in capsys.readouterr().out
    assert run(["db", "upgrade"]) == 0
    assert "is up to date" in capsys.readouterr().out
    assert run(["db", "status", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["verdict"], said["revision"], said["newest"]) == ("current", HEAD, HEAD)
    target = home.parent / "copy.db"
    assert run(["db", "backup", str(target), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["size_bytes"] == target.stat().st_size
    assert run(["db", "backup", str(target)]) == 4
    assert "is there already" in capsys.readouterr().err


def test_a_database_of_another_version_is_told_by_the_exit_code(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of a newer version is left as it is, by whatever command comes."""
    run(["db", "upgrade"])
    revise(home, "0003")
    assert run(["db", "status"]) == 1
    assert "is older than this version" in capsys.readouterr().out
    revise(home, "9999")
    assert run(["db", "status"]) == 4
    for command in (["db", "upgrade"], ["runs", "list"]):
        assert run(command) == 4
        assert "Install the newest version" in capsys.readouterr().err
    assert run(["db", "status"]) == 4


def test_a_server_is_backed_up_by_its_own_programs(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No copy is made, so it is no success; the line that makes one holds no password."""
    monkeypatch.setenv("TURNOUT_DATABASE", "postgresql://me:secret@db.example.org/turnout")
    assert run(["db", "backup", "copy.dump"]) == 4
    said = capsys.readouterr().err
    assert "pg_dump --format=custom --file=copy.dump" in said
    assert "secret" not in said
    assert not home.exists()
