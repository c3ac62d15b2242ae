"""The stream by which a snapshot leaves one sandbox and enters another."""

import io
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.sandbox.inside.snapshot import (
    END,
    FILE,
    FOLDER,
    HARDLINK,
    PIECE,
    SYMLINK,
    BrokenStreamError,
    Record,
    pack,
    unpack,
)

HOLE = 1 << 20


@pytest.fixture
def trees(tmp_path: Path) -> list[Path]:
    """Make the three views of a tree, as an overlay would show them."""
    folders = [tmp_path / name for name in ("changes", "below", "merged")]
    for folder in folders:
        folder.mkdir()
    return folders


def packed(trees: list[Path]) -> bytes:
    """Return the stream of one tree named `repo`."""
    output = io.BytesIO()
    pack([b"repo", *(os.fsencode(tree) for tree in trees)], output)
    return output.getvalue()


def laid_down(stream: bytes, folder: Path) -> tuple[int, int]:
    """Unpack into a new folder."""
    folder.mkdir()
    return unpack(os.fsencode(folder), io.BytesIO(stream))


def test_only_what_was_changed_is_in_it(trees: list[Path], tmp_path: Path) -> None:
    """A file that lies beneath and is still there leaves no trace; one that is gone does."""
    changes, below, merged = trees
    for path in (below / "kept", below / "gone", merged / "kept", merged / "new", changes / "new"):
        path.write_text(path.name)
    assert laid_down(packed(trees), tmp_path / "layer") == (3, 3)
    layer = tmp_path / "layer" / "repo"
    assert {path.name for path in layer.iterdir()} == {"new", "gone"}
    assert (layer / "new").read_text() == "new"
    gone = (layer / "gone").lstat()
    assert stat.S_ISCHR(gone.st_mode)
    assert gone.st_rdev == 0


def test_a_folder_that_hides_another_marks_what_it_hides(trees: list[Path], tmp_path: Path) -> None:
    """It needs no attribute of its own: each hidden name is marked, at every depth."""
    changes, below, merged = trees
    (below / "again" / "sub").mkdir(parents=True)
    for path in ("again/old", "again/sub/old"):
        (below / path).write_text("old")
    for view in (changes, merged):
        (view / "again" / "sub").mkdir(parents=True)
        (view / "again" / "sub" / "new").write_text("new")
    laid_down(packed(trees), tmp_path / "layer")
    layer = tmp_path / "layer" / "repo" / "again"
    assert stat.S_ISCHR((layer / "old").lstat().st_mode)
    assert stat.S_ISCHR((layer / "sub" / "old").lstat().st_mode)
    assert (layer / "sub" / "new").read_text() == "new"


def test_what_its_owner_may_not_read_keeps_its_mode(trees: list[Path], tmp_path: Path) -> None:
    """It is readable for a moment alone."""
    changes, _, _ = trees
    trees[2] = changes
    (changes / "closed").mkdir()
    (changes / "closed" / "file").write_text("secret")
    (changes / "closed" / "file").chmod(0)
    (changes / "closed").chmod(0)
    laid_down(packed(trees), tmp_path / "layer")
    layer = tmp_path / "layer" / "repo" / "closed"
    for closed in (changes / "closed", layer):
        assert stat.S_IMODE(closed.stat().st_mode) == 0
        closed.chmod(0o700)
        assert stat.S_IMODE((closed / "file").stat().st_mode) == 0
        (closed / "file").chmod(0o600)
        assert (closed / "file").read_text() == "secret"


def test_holes_and_links_stay_what_they_are(trees: list[Path], tmp_path: Path) -> None:
    """A large empty file costs nothing on its way, and two names are still one file."""
    changes = trees[0]
    trees[2] = changes
    with (changes / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    (changes / "first").write_text("x")
    (changes / "second").hardlink_to(changes / "first")
    (changes / "link").symlink_to("../elsewhere")
    os.mkfifo(changes / "fifo")
    stream = packed(trees)
    assert len(stream) < 1_000
    laid_down(stream, tmp_path / "layer")
    layer = tmp_path / "layer" / "repo"
    assert (layer / "sparse").stat().st_size == 1 << 40
    assert (layer / "sparse").stat().st_blocks == 0
    assert (layer / "first").samefile(layer / "second")
    assert (layer / "link").readlink() == Path("../elsewhere")
    assert (layer / "fifo").is_fifo()


@given(pieces=st.lists(st.tuples(st.integers(0, 6), st.binary(max_size=50)), max_size=4))
def test_every_file_comes_out_as_it_went_in(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[tuple[int, bytes]]
) -> None:
    """Whatever is in it, and wherever its holes are."""
    root = tmp_path_factory.mktemp("stream")
    (root / "changes").mkdir()
    (root / "below").mkdir()
    with (root / "changes" / "file").open("wb") as file:
        for place, data in pieces:
            file.seek(place * HOLE)
            file.write(data)
    laid_down(packed([root / "changes", root / "below", root / "changes"]), root / "layer")
    before = (root / "changes" / "file").stat()
    after = (root / "layer" / "repo" / "file").stat()
    assert after.st_mtime_ns == before.st_mtime_ns
    assert (root / "layer/repo/file").read_bytes() == (root / "changes/file").read_bytes()


@pytest.mark.parametrize(
    "stream",
    [
        b"",
        Record(FOLDER, 0o755, 0, b"repo").encode(),
        Record(FOLDER, 0o755, 0, b"/etc/x").encode() + Record(END).encode(),
        Record(FOLDER, 0o755, 0, b"../x").encode() + Record(END).encode(),
        Record(SYMLINK, 0o755, 0, b"a/../../x", b"y").encode() + Record(END).encode(),
        Record(HARDLINK, 0o755, 0, b"x", b"/etc/passwd").encode() + Record(END).encode(),
        Record(FOLDER, 0o755, 0, b"n" * (1 << 17)).encode() + Record(END).encode(),
        Record(b"?", 0, 0, b"x").encode() + Record(END).encode(),
        Record(FILE, 0o644, 0, b"x").encode() + PIECE.pack(0, 1 << 30),
        Record(FILE, 0o644, 0, b"x").encode() + PIECE.pack(0, 5) + b"1234",
    ],
)
def test_a_broken_stream_is_refused(tmp_path: Path, stream: bytes) -> None:
    """One that ends early, leads elsewhere or is too long for what it should hold."""
    with pytest.raises(BrokenStreamError):
        laid_down(stream, tmp_path / "layer")
    assert {path.name for path in tmp_path.iterdir()} == {"layer"}


@given(stream=st.binary(max_size=300))
def test_no_stream_does_more_than_fail(
    tmp_path_factory: pytest.TempPathFactory, stream: bytes
) -> None:
    """Whatever arrives, nothing is written beside the folder."""
    root = tmp_path_factory.mktemp("stream")
    for prefix in (b"", Record(FOLDER, 0o755, 0, b"repo").encode()):
        with pytest.raises((BrokenStreamError, OSError)):
            laid_down(prefix + stream, root / str(len(prefix)))
    assert {path.name for path in root.iterdir()} == {"0", str(len(prefix))}
