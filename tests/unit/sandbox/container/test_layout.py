"""What a container is shown, and where on the host that lies."""

from pathlib import Path

from turnout.sandbox.base import Limits, Mount
from turnout.sandbox.container.engines.user import User
from turnout.sandbox.container.layout import OwnFolder, staged, unstaged
from turnout.sandbox.walls.contents import Contents, Tree

LIMITS = Limits(disk_bytes=1 << 20, inodes=100)
USER = User(2_000_000_001, 2_000_000_000)
TREE = Tree("/repo", "/base", ("/state/layer", "/state/tree"))


def targets(mounts: tuple[Mount, ...]) -> dict[str, Mount]:
    """Return mounts by where they are shown."""
    return {mount.target: mount for mount in mounts}


def test_what_a_run_writes_is_on_one_stage(tmp_path: Path) -> None:
    """One size and one number of files for all of it."""
    places = staged(tmp_path / "stage", Contents(trees=(TREE,)), LIMITS, USER)
    shown = targets(places.mounts)
    stage = str(tmp_path / "stage")
    for target in ("/repo", "/workspace", "/tmp", "/dev/shm"):
        assert shown[target].writable
        assert shown[target].source.startswith(stage)
    assert shown["/repo"].source == shown["/workspace"].source
    assert (places.plan.size, places.plan.inodes) == (LIMITS.disk_bytes, LIMITS.inodes)
    assert not places.tmpfs
    assert not places.volume


def test_the_engine_keeps_its_rights_on_the_stage(tmp_path: Path) -> None:
    """Files belong to the container's user, whom the engine takes on by itself."""
    plan = staged(tmp_path / "stage", Contents(trees=(TREE,)), LIMITS, USER).plan
    assert plan.identity == (USER.uid, USER.gid)
    assert not plan.drops
    assert [(each.name, each.lowers) for each in plan.overlays] == [
        ("repo", ["/state/layer", "/state/tree"])
    ]


def test_what_lies_beneath_is_shown_read_only(tmp_path: Path) -> None:
    """So are the changes, from which a snapshot is made within."""
    shown = targets(staged(tmp_path / "s", Contents(trees=(TREE,)), LIMITS, USER).mounts)
    assert not shown["/base"].writable
    assert not shown["/run/turnout/changes"].writable


def test_an_empty_workspace_is_a_folder_of_the_stage(tmp_path: Path) -> None:
    """Without anything beneath."""
    places = staged(tmp_path / "stage", Contents(), LIMITS, USER)
    assert ("repo", 0o755) in places.plan.folders
    assert "/run/turnout/changes" not in targets(places.mounts)


def test_folders_on_the_way_to_a_mount_are_the_users(tmp_path: Path) -> None:
    """An engine would make them as root's, and nothing could be put beside the mount."""
    contents = Contents((Mount("/state/wheels", "/tmp/setup/wheels/0"),))
    plan = staged(tmp_path / "stage", contents, LIMITS, USER).plan
    assert plan.folders[-3:] == [
        ("tmp/setup", 0o755),
        ("tmp/setup/wheels", 0o755),
        ("repo", 0o755),
    ]
    tmpfs = unstaged(contents, LIMITS).tmpfs
    assert [each.target for each in tmpfs] == ["/tmp", "/tmp/setup", "/tmp/setup/wheels"]


def test_without_a_stage_the_engine_makes_what_is_written() -> None:
    """The workspace has both its names."""
    places = unstaged(Contents((Mount("/state/tree", "/base"),)), LIMITS)
    assert places.plan.stage == ""
    assert places.volume == ("/repo", "/workspace")
    assert [each.size for each in places.tmpfs] == [LIMITS.disk_bytes]
    assert targets(places.mounts).keys() == {"/base"}


def test_nothing_of_the_host_is_in_the_system_files(tmp_path: Path) -> None:
    """Names and accounts are the sandbox's own, and no name server is known."""
    folder = OwnFolder(tmp_path / "own")
    folder.fill({"find.py": b"program"}, USER)
    shown = {target: Path(mount.source) for target, mount in targets(tuple(folder.mounts)).items()}
    assert shown["/etc/resolv.conf"].read_text() == ""
    assert "agent:x:2000000001:2000000000:" in shown["/etc/passwd"].read_text()
    assert not any(mount.writable for mount in folder.mounts)
    assert (shown["/run/turnout"] / "find.py").read_bytes() == b"program"


def test_a_file_that_comes_later_shows_as_well(tmp_path: Path) -> None:
    """Such as the authorities that a run trusts; at the end all of it goes."""
    folder = OwnFolder(tmp_path / "own")
    folder.fill({}, USER)
    folder.add("ca.pem", b"one")
    assert (folder.socket.parent / "ca.pem").read_bytes() == b"one"
    folder.remove()
    folder.remove()
    assert not list(tmp_path.iterdir())
