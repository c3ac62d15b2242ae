"""Which folders are sent to a sandbox that shares none with us, and where to."""

from pathlib import Path

from turnout.sandbox.base import Mount
from turnout.sandbox.transfer.base import targets
from turnout.sandbox.transfer.folders import room_for

MOUNTS = (
    Mount("/state/tree", "/base"),
    Mount("/state/git", "/base.git"),
    Mount("/state/venv", "/venv"),
    Mount("/state/upper", "/base.more/0"),
    Mount("/state/lower", "/base.more/1"),
)


def test_a_base_is_unpacked_where_it_is_used() -> None:
    """What lies under the tree first, the lowest first; the tree over it; nothing twice."""
    assert targets(MOUNTS, "from_base") == (
        (Path("/state/lower"), "/repo"),
        (Path("/state/upper"), "/repo"),
        (Path("/state/tree"), "/repo"),
        (Path("/state/git"), "/base.git"),
        (Path("/state/venv"), "/venv"),
    )


def test_an_empty_workspace_is_shown_the_mounts() -> None:
    """Each where it was to be."""
    expected = tuple((Path(mount.source), mount.target) for mount in MOUNTS)
    assert targets(MOUNTS, "empty") == expected


def test_the_room_of_folders_is_that_of_their_files(tmp_path: Path) -> None:
    """All of them, however deep; a link counts as one."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").write_bytes(b"x" * 1000)
    (tmp_path / "link").symlink_to("/etc/passwd")
    assert 1000 <= room_for([tmp_path]) < 1100
    assert room_for([]) == 0
