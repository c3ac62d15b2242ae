"""Server-sent events come out the same however their bytes were split."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.gateway.providers.sse import EventTooLargeError, RawEvent, SseDecoder


def decode(parts: list[bytes]) -> list[RawEvent]:
    """Return every event of a stream that ends after `parts`."""
    decoder = SseDecoder()
    events = [event for part in parts for event in decoder.feed(part)]
    last = decoder.close()
    return [*events, last] if last else events


def cut_at(raw: bytes, places: list[int]) -> list[bytes]:
    """Return `raw` in pieces."""
    bounds = [0, *sorted(place % (len(raw) + 1) for place in places), len(raw)]
    return [raw[a:b] for a, b in itertools.pairwise(bounds)]


LINE = st.text(st.characters(codec="utf-8", exclude_characters="\r\n")).map(str.strip)


@given(
    texts=st.lists(LINE, min_size=1),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    places=st.lists(st.integers(min_value=0)),
)
def test_no_split_of_the_bytes_changes_the_events(
    texts: list[str], end: str, places: list[int]
) -> None:
    """Multi-byte characters and line ends may be cut anywhere."""
    raw = "".join(f"data: {text}{end}{end}" for text in texts).encode()
    assert decode(cut_at(raw, places)) == [RawEvent("", text) for text in texts]


def test_comments_names_and_a_byte_order_mark_are_understood() -> None:
    """Only data and event names matter."""
    raw = b"\xef\xbb\xbfdata: 1\n\n: PROCESSING\n\nevent: error\nid: 7\nretry: 1\ndata:2\n\n"
    assert decode([raw]) == [RawEvent("", "1"), RawEvent("error", "2")]


def test_data_lines_of_one_event_are_joined() -> None:
    """Several data lines are one text."""
    assert decode([b"data: a\ndata: b\n\n"]) == [RawEvent("", "a\nb")]


def test_an_event_without_its_blank_line_is_kept() -> None:
    """A server that stops after the last line loses nothing."""
    assert decode([b"data: a\n\ndata: b"]) == [RawEvent("", "a"), RawEvent("", "b")]


def test_bytes_that_are_no_text_are_replaced() -> None:
    """A broken character never breaks the stream."""
    assert decode([b"data: \xff\n\n"]) == [RawEvent("", "\ufffd")]


@pytest.mark.faults
def test_an_endless_event_is_refused() -> None:
    """A stream cannot fill the memory with one line."""
    with pytest.raises(EventTooLargeError):
        decode([b"x" * 2**20] * 20)
