"""AWS's binary framing, however its bytes are cut and whatever happens to them."""

import base64
import json
from itertools import pairwise
from pathlib import Path

import pytest
from botocore.eventstream import EventStreamBuffer
from hypothesis import given
from hypothesis import strategies as st

from turnout.gateway.exchange import ServerEvent, UpstreamError
from turnout.gateway.providers.accounts.event_stream import EventStreamDecoder

RECORDED = Path(__file__).parents[4] / "golden" / "accounts"


def bytes_of(name: str) -> bytes:
    """Return the body of a recorded stream."""
    answer = json.loads((RECORDED / f"{name}.json").read_text())["response"]
    return base64.b64decode(answer["base64"])


STREAM = bytes_of("bedrock-stream")


def decoded(*parts: bytes) -> list[ServerEvent]:
    """Return all events of a stream that comes in these parts."""
    decoder = EventStreamDecoder()
    events = [event for part in parts for event in decoder.feed(part)]
    decoder.close()
    return events


def test_the_recorded_stream_says_what_amazons_own_decoder_says() -> None:
    """Event by event; the metrics of the service are no part of the answer."""
    buffer = EventStreamBuffer()
    buffer.add_data(STREAM)
    theirs = [json.loads(base64.b64decode(json.loads(m.payload)["bytes"])) for m in buffer]
    theirs[-1].pop("amazon-bedrock-invocationMetrics")
    ours = decoded(STREAM)
    assert [event.data for event in ours] == theirs
    assert [event.name for event in ours] == [event["type"] for event in theirs]


@given(st.sets(st.integers(0, len(STREAM)), max_size=40))
def test_it_does_not_matter_where_the_bytes_are_cut(cuts: set[int]) -> None:
    """Each byte may come alone."""
    places = sorted({0, len(STREAM), *cuts})
    assert decoded(*(STREAM[a:b] for a, b in pairwise(places))) == decoded(STREAM)


@given(st.integers(0, len(STREAM) - 1), st.integers(1, 255))
def test_a_byte_that_was_changed_is_noticed(place: int, change: int) -> None:
    """By one of the checksums, or because the rest never comes."""
    damaged = bytearray(STREAM)
    damaged[place] ^= change
    with pytest.raises(UpstreamError):
        decoded(bytes(damaged))


@given(st.binary(max_size=200))
def test_bytes_of_any_kind_are_refused_cleanly(data: bytes) -> None:
    """Whatever speaks at the other end."""
    try:
        assert decoded(data) == []
    except UpstreamError:
        assert data


def test_a_stream_that_ends_inside_an_event_was_cut() -> None:
    """What came before it was delivered."""
    decoder = EventStreamDecoder()
    assert list(decoder.feed(STREAM[:-5]))
    with pytest.raises(UpstreamError, match="inside an event"):
        decoder.close()


def test_an_exception_of_the_service_has_the_status_that_it_stands_for() -> None:
    """After the events that came before it."""
    decoder = EventStreamDecoder()
    seen = []
    with pytest.raises(UpstreamError, match="Too many tokens") as failure:
        seen.extend(decoder.feed(bytes_of("bedrock-throttled-midway")))
    assert failure.value.status == 429
