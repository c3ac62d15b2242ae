import fcntl
import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.remote import Producer

from tests.overdue import bounded
from tests.postgres import running_postgres
from tests.scheduling import ByFile

# How long an example takes says more of the machine than of the code.
settings.register_profile("turnout", deadline=None, max_examples=40)
settings.register_profile("full", deadline=None, max_examples=500)
settings.load_profile("turnout")

_SECONDS = 75.0
"""For a test. Where that bound cannot end it, `faulthandler_timeout` ends its process."""
_SECONDS_AROUND = 60.0
"""For its set-up, and for its tear-down."""
_TOLD = pytest.StashKey[int]()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    """Let the workers of a whole run share tests as `ByFile` says."""
    return ByFile(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the sizes of some tests be chosen."""
    text = "prove in full size: thousands of commands, hundreds of sandboxes and of examples"
    parser.addoption("--full", action="store_true", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Keep where to tell of what is overdue, before a test's own output is caught."""
    if config.getoption("full"):
        settings.load_profile("full")
    config.stash[_TOLD] = os.dup(2)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close it."""
    os.close(config.stash[_TOLD])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """End a set-up that takes too long."""
    with bounded(f"the set-up of {item.nodeid}", _SECONDS_AROUND, item.config.stash[_TOLD]):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """End a test that takes too long."""
    with bounded(item.nodeid, _SECONDS, item.config.stash[_TOLD]):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """End a tear-down that takes too long."""
    with bounded(f"the tear-down of {item.nodeid}", _SECONDS_AROUND, item.config.stash[_TOLD]):
        return (yield)


@pytest.fixture(scope="session")
def full(pytestconfig: pytest.Config) -> bool:
    """Whether to prove in full size."""
    return bool(pytestconfig.getoption("full"))


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
