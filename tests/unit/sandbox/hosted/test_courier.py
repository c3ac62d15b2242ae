"""What a courier carries, read from what the host left for it."""

import base64
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.sandbox.hosted.inside import courier, keeper
from turnout.sandbox.inside import wire

PAYLOADS = st.lists(st.binary(max_size=300), max_size=8)


def frames_of(payloads: list[bytes]) -> list[bytes]:
    """Return frames of one call."""
    return [wire.HEADER.pack(len(data) + 5, wire.INPUT, 7) + data for data in payloads]


@given(PAYLOADS)
def test_frames_in_a_line_come_out_whole(payloads: list[bytes]) -> None:
    """As many as were put in, in their order."""
    frames = frames_of(payloads)
    sent = base64.b64encode(b"".join(frames)).decode()
    assert list(courier.sent_frames("/nowhere", "7", sent)) == frames


@settings(max_examples=30)
@given(PAYLOADS, st.integers(1, 400))
def test_frames_in_files_come_out_whole(tmp_path_factory, payloads: list[bytes], size: int) -> None:
    """Wherever the files are cut; each is removed once it was read."""
    folder: Path = tmp_path_factory.mktemp("sent")
    whole = b"".join(frames_of(payloads))
    parts = [whole[start : start + size] for start in range(0, len(whole), size)]
    for number, part in enumerate(parts):
        (folder / f"7.in.{number}").write_bytes(part)
    found = courier.sent_frames(str(folder), "7", f"parts:{len(parts)}")
    assert list(found) == frames_of(payloads)
    assert list(folder.iterdir()) == []


def test_the_programs_speak_the_same_frames() -> None:
    """Each stands alone on the machine, and says again what they share."""
    for program in (courier, keeper):
        assert program.HEADER.format == wire.HEADER.format
        for name in ("INPUT", "CANCEL", "DONE_FRAME", "REPLY", "REFUSED", "CREDIT_FRAME"):
            assert getattr(program, name) == getattr(wire, name)
    assert (courier.EXEC, courier.STDOUT) == (wire.EXEC, wire.STDOUT)
    assert (courier.WINDOW, courier.FRAME_COST) == (wire.WINDOW, wire.FRAME_COST)
    assert (courier.COLLECT, courier.LEAVE) == (keeper.COLLECT, keeper.LEAVE)
