"""Folders that are not finished yet."""

from pathlib import Path

import pytest

from turnout.sandbox.workspace.building import building, discard, remove_abandoned


def names(folder: Path) -> set[str]:
    """Return what is in a folder."""
    return {path.name for path in folder.iterdir()}


async def test_a_folder_that_is_whole_stays_under_its_name(tmp_path: Path) -> None:
    """Until then it is hidden."""
    async with building(tmp_path, "tree") as folder:
        assert folder.name.startswith(".tree-")
        (folder / "file").write_text("x")
        folder.rename(tmp_path / "whole")
    assert names(tmp_path) == {"whole"}
    assert (tmp_path / "whole" / "file").read_text() == "x"


async def test_a_folder_that_was_given_up_is_removed(tmp_path: Path) -> None:
    """Whatever became of what was in it."""
    with pytest.raises(ValueError, match="given up"):
        await _give_up(tmp_path)
    assert not names(tmp_path)


async def _give_up(parent: Path) -> None:
    async with building(parent, "tree") as folder:
        (folder / "closed").mkdir(mode=0)
        raise ValueError("given up")


async def test_what_a_dead_service_left_is_removed_and_no_more(tmp_path: Path) -> None:
    """A folder that is being filled is locked; a finished one is not hidden."""
    (tmp_path / ".tree-left").mkdir()
    (tmp_path / "whole").mkdir()
    (tmp_path / ".file").touch()
    async with building(tmp_path, "tree") as folder:
        await remove_abandoned(tmp_path)
        assert names(tmp_path) == {folder.name, "whole", ".file"}
    await remove_abandoned(tmp_path / "missing")
    await discard(tmp_path / "missing")


async def test_no_descriptor_is_left(tmp_path: Path) -> None:
    """Neither of the folder nor of the one that it is in."""
    before = names(Path("/proc/self/fd"))
    async with building(tmp_path, "tree"):
        pass
    await remove_abandoned(tmp_path)
    assert names(Path("/proc/self/fd")) == before
