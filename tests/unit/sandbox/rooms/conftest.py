import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of eight megabytes and 400 files."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    folder = tmp_path / "disk"
    folder.mkdir()
    options = "size=8m,nr_inodes=400"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "turnout-test", folder], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)
