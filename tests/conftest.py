import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.remote import Producer

from tests.postgres import running_postgres
from tests.scheduling import ByFile

# How long an example takes says more of the machine than of the code.
settings.register_profile("turnout", deadline=None)
settings.load_profile("turnout")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    """Let the workers of a whole run share tests as `ByFile` says."""
    return ByFile(config, log)


@pytest.fixture(scope="session")
def sandbox_state(testrun_uid: str) -> Iterator[Path]:
    """One state folder for all workers of a test run, so that `/venv` is made once.

    It is not below pytest's own folders, which the uids of sandboxes cannot enter. The last worker
    to leave removes it.
    """
    folder = Path(tempfile.gettempdir(), f"turnout-tests-{testrun_uid}")
    lock = folder.with_suffix(".lock")
    while True:
        users = lock.open("a")
        fcntl.flock(users, fcntl.LOCK_SH)
        if lock.exists() and lock.samefile(f"/proc/self/fd/{users.fileno()}"):
            break
        users.close()
    folder.mkdir(exist_ok=True)
    folder.chmod(0o711)
    yield folder
    with users:
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        shutil.rmtree(folder)
        lock.unlink()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Start a PostgreSQL for the session and hand out its URL."""
    with running_postgres() as url:
        yield url
