"""Payloads as the first schema wrote them must load for ever; add files, never change one."""

from pathlib import Path
from typing import get_args

from tests.samples import STRANGE, receipt

from turnout.core.events import Event, Notice, PatchMade, decode_event
from turnout.core.receipts import decode_receipt

GOLDEN = Path(__file__).parents[2] / "golden"


def lines(name: str) -> list[str]:
    """Return the payloads of one file."""
    return (GOLDEN / name).read_text(encoding="ascii").splitlines()


def test_every_schemas_events_load():
    """One of each kind."""
    names = sorted(path.name for path in GOLDEN.glob("events-*.jsonl"))
    events = [decode_event(line) for name in names for line in lines(name)]
    assert {type(event) for event in events} == set(get_args(Event))


def test_what_is_hard_to_keep_is_unchanged():
    """Bytes that are no UTF-8, a NUL, a lone surrogate."""
    events = [decode_event(line) for line in lines("events-0001.jsonl")]
    assert Notice(STRANGE, "warning") in events
    patches = [event.patch.diff for event in events if isinstance(event, PatchMade)]
    assert patches == [bytes(range(256))]


def test_the_first_schemas_receipts_load():
    """A served request and a refused one."""
    served, refused = (decode_receipt(line) for line in lines("receipts-0001.jsonl"))
    assert served == receipt("req-1")
    assert (refused.error_code, refused.decision) == ("tool_not_allowed", None)
