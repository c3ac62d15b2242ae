"""A PostgreSQL of one's own on a unix socket, which can be stopped and started."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import create_engine, make_url, text
from sqlalchemy.pool import NullPool

__all__ = ["Postgres", "empty_database", "postgres_programs", "running_postgres"]

_PLACES: Final = "/usr/lib/postgresql"
_SECONDS: Final = 60.0


class Postgres:
    """A server; `running_postgres` makes it."""

    def __init__(self, programs: Path, folder: Path, options: str) -> None:
        self.url = f"postgresql://turnout@/postgres?host={folder}"
        """Of its first database."""
        self._control: Sequence[str | Path] = [programs / "pg_ctl", "-D", folder / "data", "-w"]
        self._options = f"-c listen_addresses='' -c unix_socket_directories={folder} {options}"
        self._log = folder / "log"

    def start(self) -> None:
        """Start it, and wait until it serves."""
        _call([*self._control, "-o", self._options, "-l", self._log, "start"])

    def stop(self) -> None:
        """Stop it at once, as if it had died; what was committed is there when it starts again."""
        _call([*self._control, "-m", "immediate", "stop"])


def postgres_programs() -> Path | None:
    """Return the folder of PostgreSQL's programs; None where it is not installed."""
    places = map(str, sorted(Path(_PLACES).glob("*/bin"), reverse=True))
    found = shutil.which("initdb") or shutil.which("initdb", path=os.pathsep.join(places))
    return None if found is None else Path(found).resolve().parent


@contextmanager
def running_postgres(programs: Path, *, durable: bool = True) -> Iterator[Postgres]:
    """Run a server until the block ends; one that is not `durable` does not wait for the disk."""
    with tempfile.TemporaryDirectory(prefix="turnout-pg-") as name:
        folder = Path(name)
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        data = folder / "data"
        _call([programs / "initdb", "-D", data, "-U", "turnout", "-A", "trust", "-E", "UTF8"])
        server = Postgres(programs, folder, "" if durable else "-c fsync=off")
        server.start()
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def empty_database(server: str, name: str) -> Iterator[str]:
    """Create a database on the server of a URL; yield its own URL, and drop it at the end."""
    url = make_url(server).set(drivername="postgresql+psycopg")
    engine = create_engine(url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with engine.connect() as connection:
        connection.execute(text(f'CREATE DATABASE "{name}"'))
    yield server.replace("/postgres?", f"/{name}?")
    with engine.connect() as connection:
        connection.execute(text(f'DROP DATABASE "{name}" WITH (FORCE)'))


def _call(argv: Sequence[str | Path]) -> None:
    """Run a program of PostgreSQL, which refuses to be root."""
    drop = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    command = [*(drop if os.geteuid() == 0 else []), *map(str, argv)]
    subprocess.run(
        command,
        check=True,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=_SECONDS,
    )
