import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def own_state() -> Iterator[Path]:
    """Make a state folder that no other worker uses, for tests that look at all that is in it."""
    folder = Path(tempfile.mkdtemp(prefix="turnout-own-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)
