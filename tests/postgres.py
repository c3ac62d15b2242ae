"""A PostgreSQL of a test session's own, gone with it."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

_PLACES = tuple(map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)))


@contextmanager
def running_postgres() -> Iterator[str]:
    """Start a server on a unix socket of its own; yield the URL of its first database.

    The test that asks for it is skipped where PostgreSQL is not installed.
    """
    found = shutil.which("initdb") or shutil.which("initdb", path=os.pathsep.join(_PLACES))
    if found is None:
        pytest.skip("PostgreSQL is not installed: its initdb was not found")
    programs = Path(found).resolve().parent
    with tempfile.TemporaryDirectory(prefix="turnout-pg-") as name:
        folder = Path(name)
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        data = folder / "data"
        _call([programs / "initdb", "-D", data, "-U", "turnout", "-A", "trust", "-E", "UTF8"])
        options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
        control = [programs / "pg_ctl", "-D", data, "-w"]
        _call([*control, "-o", options, "-l", folder / "log", "start"])
        try:
            yield f"postgresql+psycopg://turnout@/postgres?host={folder}"
        finally:
            _call([*control, "-m", "immediate", "stop"])


@contextmanager
def empty_database(server: str, name: str) -> Iterator[str]:
    """Create a database on a server; yield its URL, and drop it at the end."""
    engine = create_engine(server, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with engine.connect() as connection:
        connection.execute(text(f'CREATE DATABASE "{name}"'))
        yield server.replace("/postgres?", f"/{name}?")
        connection.execute(text(f'DROP DATABASE "{name}" WITH (FORCE)'))


def _call(argv: Sequence[str | Path]) -> None:
    """Run a program of PostgreSQL, which refuses to be root."""
    drop = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    command = [*(drop if os.geteuid() == 0 else []), *map(str, argv)]
    subprocess.run(command, check=True, cwd="/", stdin=subprocess.DEVNULL, capture_output=True)
