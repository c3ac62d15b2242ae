"""Receipts of the first schema count after an upgrade, on every database."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine, select, text
from tests.databases import opened
from tests.samples import NOON, STRANGE, receipt

import turnout.store
from turnout.core.govern.usage import UsageQuery
from turnout.core.receipts import encode_receipt
from turnout.store.receipts import ReceiptsStore, receipt_row
from turnout.store.schema import metadata, receipts
from turnout.store.usage import UsageStore

OLD = (
    "INSERT INTO receipts (request_id, at, session, key, payload)"
    " VALUES (:request_id, :at, :session, :key, :payload)"
)
FIRST_FIELDS = (Path(__file__).parents[1] / "golden" / "receipts-0001.jsonl").read_text()


def as_first_written(one):
    """Return the row of a receipt as the first schema had it, its payload without later fields."""
    known = json.loads(FIRST_FIELDS.splitlines()[0])
    payload = {k: v for k, v in json.loads(encode_receipt(one)).items() if k in known}
    row = receipt_row(one)
    kept = {name: row[name] for name in ("request_id", "session", "key")}
    return {**kept, "at": one.at.replace(tzinfo=None), "payload": json.dumps(payload)}


def fill_first_schema(url, rows):
    """Make the first tables and put rows into them."""
    engine = create_engine(url)
    with engine.begin() as connection:
        config = Config(attributes={"connection": connection})
        place = Path(turnout.store.__path__[0]) / "migrations"
        config.set_main_option("script_location", str(place))
        command.upgrade(config, "0001")
        for row in rows:
            connection.execute(text(OLD), row)
    engine.dispose()


def made():
    """Return receipts as they were made then: served, refused, failed, at an unknown price."""
    served = receipt("req-1")
    strange = replace(
        served.routing, model=STRANGE, deployment=f"x/{STRANGE}", cost_micros=None, fallback=False
    )
    nobody = {"routing": None, "decision": None, "ttft_ms": None}
    return [
        replace(served, policy="default"),
        replace(receipt("req-2"), policy="default", routing=strange, cost_micros=None),
        replace(
            receipt("req-3", session=None, key="other"),
            **nobody,
            status="refused",
            attempts=(),
            cost_micros=None,
            at=NOON + timedelta(hours=13),
        ),
        replace(receipt("req-4"), **nobody, status="failed", cost_micros=0),
        # More than the migration takes at a time.
        *(replace(receipt(f"req-{n}"), policy="default") for n in range(5, 600)),
    ]


async def test_receipts_of_the_first_schema_get_every_column(database_url):
    """As if they had been written by this version."""
    old = made()
    fill_first_schema(database_url, [as_first_written(one) for one in old])
    async with opened(database_url) as database:
        stored = select(receipts).order_by(receipts.c.number)
        rows = await database.read(lambda connection: connection.execute(stored).all())
        report = await UsageStore(database).usage(UsageQuery(by=("key",)))
        found = await ReceiptsStore(database).get("req-2")
        wrong = await database.read(
            lambda connection: compare_metadata(
                MigrationContext.configure(connection, opts={"compare_type": True}), metadata
            )
        )
    columns = [
        {k: v for k, v in row._asdict().items() if k not in {"number", "payload"}} for row in rows
    ]
    assert columns == [dict(receipt_row(one)) for one in old]
    assert found == replace(old[1], policy="")
    assert (report.total.requests, report.total.unpriced, report.total.refused) == (599, 1, 1)
    assert wrong == []


async def test_an_upgraded_table_takes_further_receipts(database_url):
    """Their numbers go on where the old ones end."""
    fill_first_schema(database_url, [as_first_written(receipt("req-1"))])
    async with opened(database_url) as database:
        await ReceiptsStore(database).add(receipt("req-2"))
        numbers = select(receipts.c.number).order_by(receipts.c.number)
        found = await database.read(lambda connection: connection.scalars(numbers).all())
    assert found == [1, 2]
