"""A PostgreSQL of a test session's own, gone with it."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from turnout.testing.fleet import postgres


@contextmanager
def stoppable_postgres() -> Iterator[postgres.Postgres]:
    """Run a server that the test may stop and start; it is skipped without PostgreSQL."""
    programs = postgres.postgres_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: its initdb was not found")
    with postgres.running_postgres(programs, durable=False) as server:
        yield server


@contextmanager
def running_postgres() -> Iterator[str]:
    """Start a server on a unix socket of its own; yield the URL of its first database.

    The test that asks for it is skipped where PostgreSQL is not installed.
    """
    with stoppable_postgres() as server:
        yield server.url.replace("postgresql:", "postgresql+psycopg:")
