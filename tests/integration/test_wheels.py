"""Wheels that the host fetches: none of what packages bring along runs there."""

import zipfile
from pathlib import Path

import pytest

from turnout.sandbox.setup.interpreter import Interpreter
from turnout.sandbox.setup.wheels import Download

INTERPRETER = Interpreter(
    libc=("glibc", "2.36"),
    environment={"python_version": "3.11", "platform_machine": "x86_64"},
)
BACKEND = """
from pathlib import Path
Path(__file__).with_name("ran").touch()
def prepare_metadata_for_build_wheel(folder, settings=None):
    described = Path(folder, "payload-1.dist-info")
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\\nName: payload\\nVersion: 1\\n")
    return described.name
"""


def wheel(folder: Path, name: str, requires: str = "") -> None:
    """Make a package that is empty but for what it asks for."""
    described = f"{name}-1.dist-info"
    asked = f"Requires-Dist: {requires}\n" if requires else ""
    with zipfile.ZipFile(folder / f"{name}-1-py3-none-any.whl", "w") as packed:
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n{asked}"
        packed.writestr(f"{described}/METADATA", metadata)
        packed.writestr(f"{described}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        packed.writestr(f"{described}/RECORD", "")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder that pip is told to take packages from, with those that always are fetched."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name in ("pip", "pytest"):
        wheel(folder, name)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


async def test_what_a_wheel_asks_for_by_its_url_is_not_built(index: Path, tmp_path: Path) -> None:
    """Its build would be a program of a package's on the host; the wheel is left out."""
    payload = tmp_path / "payload"
    payload.mkdir()
    backed = '[build-system]\nrequires = []\nbuild-backend = "back"\nbackend-path = ["."]\n'
    (payload / "pyproject.toml").write_text(backed)
    (payload / "back.py").write_text(BACKEND)
    wheel(index, "hostile", f"payload @ {payload.as_uri()}")
    wheel(index, "harmless")
    fetched = Download(tmp_path, INTERPRETER)
    assert await fetched.obtain(["hostile", "harmless"], []) == ["harmless"]
    assert not (payload / "ran").exists()
    assert (tmp_path / "harmless-1-py3-none-any.whl").is_file()
