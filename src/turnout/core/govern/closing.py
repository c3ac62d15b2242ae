"""What a request at the gateway counts on, and all that it leaves behind."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from turnout.core.ids import RequestId, ToolCallId
from turnout.core.money import Micros
from turnout.core.policies import SessionCaps
from turnout.core.receipts import Receipt
from turnout.core.tools import Holder

__all__ = ["Charge", "ChargeKind", "Closing", "KeptReply", "MadeCalls", "StoredResponse"]

ChargeKind = Literal["session", "key_minute", "key_day"]

_NOTHING = Micros(0)


@dataclass(frozen=True, slots=True)
class Charge:
    """A count that a request is admitted against, and adds to."""

    kind: ChargeKind
    scope: str
    """Who is counted: the name of a key."""
    name: str
    """What is counted: a session id, a minute, a day."""
    caps: SessionCaps


@dataclass(frozen=True, slots=True)
class MadeCalls:
    """Tool calls that an answer made."""

    scope: str
    calls: tuple[ToolCallId, ...]
    holder: Holder
    reasoning: str = ""
    """What the model thought before them; empty where it did not say or no one wants it back."""


@dataclass(frozen=True, slots=True)
class KeptReply:
    """An answer that is replayed to whoever sends the same request under the same key again."""

    scope: str
    idempotency_key: str
    digest: str
    """Of the request."""
    payload: str
    """JSON; empty: nothing to replay, the key is free again."""
    until: datetime
    holder: RequestId
    """The request that has claimed the key; where another has meanwhile, that one's claim stays."""


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response that a later request may continue."""

    scope: str
    id: RequestId
    items: str
    """The whole conversation up to and including it, as a JSON array of input items."""
    holder: Holder
    made: int = 0
    """How many of the items, the last ones, are the response's own."""
    envelope: str = "{}"
    """The response object without its output, as JSON."""


@dataclass(frozen=True, slots=True)
class Closing:
    """All that one request leaves behind."""

    receipt: Receipt
    charges: tuple[Charge, ...] = ()
    """What it was counted on when it was admitted."""
    worst: Micros = _NOTHING
    """What was reserved on each."""
    actual: Micros = _NOTHING
    made: MadeCalls | None = None
    kept: KeptReply | None = None
    stored: StoredResponse | None = None
