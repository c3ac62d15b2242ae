"""Qualities that were kept before evaluations were."""

from datetime import UTC, datetime
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, insert
from tests.samples import STRANGE

import turnout.store
from turnout.core.govern.evidence import Score, in_force
from turnout.store.database import open_database
from turnout.store.dialects import sqlite_engine
from turnout.store.evaluations import EvaluationsStore
from turnout.store.evidence import EvidenceStore
from turnout.store.schema import qualities

AT = datetime(2026, 1, 1, 12, tzinfo=UTC)


def migrate(connection: Connection, revision: str) -> None:
    """Run the migrations up to one."""
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(turnout.store.__path__[0]) / "migrations"))
    command.upgrade(config, revision)


async def test_what_counted_before_is_an_evaluation_afterwards(tmp_path: Path) -> None:
    """So that it can be taken back, and comes back once a later one is."""
    engine = sqlite_engine(tmp_path / "turnout.db", durability="normal", busy_timeout=1)
    row = {
        "subject": STRANGE,
        "task": "coding",
        "at": AT,
        "solved": 3,
        "tried": 4,
        "source": STRANGE,
    }
    with engine.begin() as connection:
        migrate(connection, "0006")
        connection.execute(insert(qualities), row)
        connection.execute(insert(qualities), {**row, "subject": "n"})
        migrate(connection, "0007")
    engine.dispose()
    async with open_database(tmp_path / "turnout.db") as database:
        applied = await EvaluationsStore(database).applied()
        assert len({each.id for each in applied}) == 2
        assert {each.scores for each in applied} == {(Score(STRANGE, 3, 4),), (Score("n", 3, 4),)}
        assert {(each.source, each.at, each.mode) for each in applied} == {(STRANGE, AT, "hidden")}
        await EvaluationsStore(database).undo(applied[0].id)
        assert await EvidenceStore(database).qualities() == in_force(applied[1:])
