"""Streams in pieces: whatever they hold, nothing is lost and equal parts are cut alike."""

from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.store.pieces import LARGEST, Cutter

LINES = st.lists(st.binary(max_size=80), max_size=60).map(b"\n".join)


def cut(*parts: bytes) -> list[bytes]:
    """Return the pieces of a stream that comes in parts."""
    cutter = Cutter()
    pieces = [piece for part in parts for piece in cutter.feed(part)]
    return [*pieces, *cutter.close()]


@settings(max_examples=40)
@given(data=LINES, repeats=st.integers(1, 400), step=st.integers(1, 5_000))
def test_pieces_are_the_stream_however_it_comes(data: bytes, repeats: int, step: int) -> None:
    """Joined they are what was put in; where the stream was broken changes none of them."""
    whole = data * repeats
    pieces = cut(whole)
    assert b"".join(pieces) == whole
    assert all(0 < len(piece) <= LARGEST for piece in pieces)
    assert cut(*(whole[at : at + step] for at in range(0, len(whole), step))) == pieces


def test_what_is_put_in_changes_the_pieces_around_it_alone() -> None:
    """Of a megabyte of text, one line more in the middle leaves nearly all pieces as they were."""
    lines = [b"%d: what line %d of this text says\n" % (n, n * n) for n in range(30_000)]
    before = cut(b"".join(lines))
    after = cut(b"".join([*lines[:15_000], b"one more\n", *lines[15_000:]]))
    assert len(before) > 20
    assert len(set(after) - set(before)) <= 3


def test_bytes_without_any_line_are_cut_at_the_largest_size() -> None:
    """Nothing waits for a line that never comes."""
    assert list(map(len, cut(bytes(2 * LARGEST + 5)))) == [LARGEST, LARGEST, 5]
