"""Whatever a command prints in whatever pieces, head, tail and counts add up."""

from hypothesis import given
from hypothesis import strategies as st

from turnout.sandbox.inside.wire import STDOUT, Stream

PIECES = st.lists(st.binary(min_size=1, max_size=40), max_size=30)


@given(PIECES, st.integers(0, 60), st.integers(0, 60))
def test_head_and_tail_are_the_ends_of_what_was_printed(
    pieces: list[bytes], head: int, tail: int
) -> None:
    """What is passed on, what is kept and what is dropped make the whole."""
    stream = Stream(-1, STDOUT, head, tail, False)
    sent = b"".join(stream.feed(piece) for piece in pieces)
    whole = b"".join(pieces)
    rest = stream.rest()
    assert sent == whole[:head]
    assert whole[head:].endswith(rest)
    assert len(rest) == min(tail, max(0, len(whole) - head))
    assert stream.total == len(whole)
    assert stream.omitted() == len(whole) - len(sent) - len(rest)


@given(st.integers(1, 8), st.integers(0, 4096))
def test_memory_is_bounded_whatever_is_printed(megabytes: int, tail: int) -> None:
    """Of an endless output no more is held than twice the tail and some slack."""
    stream = Stream(-1, STDOUT, 0, tail, False)
    for _ in range(megabytes * 4):
        stream.feed(bytes(1 << 18))
        assert len(stream.rest()) <= tail
    assert stream.omitted() == megabytes * (1 << 20) - tail


@given(PIECES)
def test_a_raw_stream_passes_everything(pieces: list[bytes]) -> None:
    """Nothing is kept back and nothing dropped."""
    stream = Stream(-1, STDOUT, 3, 3, True)
    assert [stream.feed(piece) for piece in pieces] == pieces
    assert stream.rest() == b""
    assert stream.omitted() == 0
