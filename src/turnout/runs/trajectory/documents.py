"""The documents that a run can be had as."""

from collections.abc import Sequence

from turnout.core.events import Entry, encode_event
from turnout.core.json import ascii_json
from turnout.runs.export import result_object
from turnout.runs.summary import fold
from turnout.runs.trajectory import TrajectoryFormat
from turnout.runs.trajectory.atif import atif_object

__all__ = ["trajectory_json"]

_VERSION = 1


def trajectory_json(entries: Sequence[Entry], wanted: TrajectoryFormat) -> str:
    """Return a run that somebody has begun, as far as it is, as one JSON object in ASCII."""
    if wanted == "atif":
        return ascii_json(atif_object(entries))
    head = ascii_json({"format": "turnout-run", "version": _VERSION})
    result = ascii_json(result_object(fold(entries)))
    listed = ",".join(map(_entry, entries))
    return f'{head[:-1]},"result":{result},"entries":[{listed}]}}'


def _entry(entry: Entry) -> str:
    event = encode_event(entry.event)
    return f'{{"seq":{entry.seq},"at":"{entry.at.isoformat()}","event":{event}}}'
