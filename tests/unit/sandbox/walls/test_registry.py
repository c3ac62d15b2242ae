"""The folder that knows of every sandbox."""

import os
from pathlib import Path

from turnout.core.ids import RunId
from turnout.sandbox.walls.registry import Registry

RUN = RunId("run-000000000001")


def abandon(registry: Registry, run_id: RunId, groups: list[Path]) -> None:
    """Leave an entry as a service does that dies."""
    entry = registry.add()
    entry.note(run_id, groups)
    os.close(entry.fd)


def test_an_entry_in_use_is_not_reaped(tmp_path: Path) -> None:
    """The lock of a living service protects it."""
    registry = Registry(tmp_path / "sandboxes")
    entry = registry.add()
    entry.note(RUN, [])
    assert registry.reap(frozenset()) == ()
    entry.settle(removed=True)
    assert not list((tmp_path / "sandboxes").iterdir())


def test_what_is_left_is_removed_unless_known(tmp_path: Path) -> None:
    """Groups and entries of unknown runs go, each run is named once."""
    registry = Registry(tmp_path / "sandboxes")
    group = tmp_path / "turnout-group"
    group.mkdir()
    abandon(registry, RUN, [group])
    abandon(registry, RUN, [tmp_path / "already-gone"])
    assert registry.reap(frozenset({RUN})) == ()
    assert group.exists()
    assert registry.reap(frozenset()) == (RUN,)
    assert not group.exists()
    assert registry.reap(frozenset()) == ()


def test_what_could_not_be_removed_is_left_to_reaping(tmp_path: Path) -> None:
    """The entry stays, and its lock does not."""
    registry = Registry(tmp_path / "sandboxes")
    entry = registry.add()
    entry.note(RUN, [])
    entry.settle(removed=False)
    assert registry.reap(frozenset()) == (RUN,)


def test_an_entry_without_contents_is_removed(tmp_path: Path) -> None:
    """A service may die between making an entry and writing it."""
    registry = Registry(tmp_path / "sandboxes")
    os.close(registry.add().fd)
    assert registry.reap(frozenset()) == ()
    assert not list((tmp_path / "sandboxes").iterdir())


def test_no_folder_means_nothing_to_reap(tmp_path: Path) -> None:
    """A service that never made a sandbox has left nothing."""
    assert Registry(tmp_path / "sandboxes").reap(frozenset()) == ()


def test_orphans_are_taken_over(tmp_path: Path) -> None:
    """By one service alone, which settles them; those in use and those known are left."""
    registry = Registry(tmp_path / "sandboxes")
    in_use = registry.add()
    in_use.note(RUN, [])
    abandon(registry, RUN, [])
    abandon(registry, RunId("run-000000000002"), [])
    ((entry, run_id),) = registry.orphans(frozenset({RUN}))
    assert run_id == "run-000000000002"
    assert not registry.orphans(frozenset({RUN}))
    entry.settle(removed=True)
    assert len(registry.names()) == 2
    in_use.settle(removed=True)


def test_an_entry_can_change_hands(tmp_path: Path) -> None:
    """A shorter note leaves nothing of a longer one."""
    registry = Registry(tmp_path / "sandboxes")
    entry = registry.add()
    entry.note(RunId("warm-" + "0" * 40), [])
    entry.note(RUN, [])
    assert registry.names() == {entry.name}
    entry.settle(removed=False)
    ((entry, run_id),) = registry.orphans(frozenset())
    assert run_id == RUN
    entry.settle(removed=True)
    assert registry.names() == frozenset()
