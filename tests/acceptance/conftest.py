"""What every acceptance test starts from."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.acceptance.command import Command
from tests.acceptance.forks import Forks

from turnout.testing.repositories import TinyRepository, buggy_pagination


@pytest.fixture(scope="session")
def state() -> Iterator[Path]:
    """Make a state folder for all tests of a worker, so that base layers are made once.

    It is not below pytest's own folder: sandboxes of root run under other users' ids and could
    not reach into that.
    """
    with TemporaryDirectory(prefix="turnout-acceptance-") as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """Start the process that all commands of a worker are forks of."""
    started = Forks()
    yield started
    started.close()


@pytest.fixture
def turnout(state: Path, tmp_path: Path, forks: Forks) -> Command:
    """Return the command, in an empty folder and an environment without any endpoint."""
    folder = tmp_path / "cwd"
    folder.mkdir()
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "TURNOUT_HOME": str(state),
        "LANG": "C.UTF-8",
    }
    return Command(folder, environment, forks)


@pytest.fixture
def pages(tmp_path: Path) -> TinyRepository:
    """Make a repository with one bug and one failing test."""
    return buggy_pagination(tmp_path / "pages")
