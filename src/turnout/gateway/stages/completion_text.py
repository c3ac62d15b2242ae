"""An answer as text, to be given again."""

import json
from collections.abc import Mapping
from typing import Any

from turnout.core.ids import RequestId
from turnout.core.inference import RoutingReport
from turnout.core.json import encode_values
from turnout.core.usage import Usage
from turnout.gateway.dialog.conversation import Call, Foreign, Reasoning, Refusal, Text
from turnout.gateway.dialog.events import AnswerPart, Native, Reply
from turnout.gateway.exchange import Completion

__all__ = ["read_completion", "write_completion"]

_PARTS: Mapping[str, type[AnswerPart]] = {
    "text": Text,
    "reasoning": Reasoning,
    "refusal": Refusal,
    "call": Call,
    "foreign": Foreign,
}
_NAMES = {kind: name for name, kind in _PARTS.items()}


def write_completion(completion: Completion, request_id: RequestId) -> str:
    """Return an answer as JSON in ASCII.

    The origin of its reply is left out: what is kept for later conversations is kept once.
    """
    reply = completion.reply
    return encode_values(
        {
            "request_id": request_id,
            "parts": [[_NAMES[type(part)], part] for part in reply.parts],
            "finish": reply.finish,
            "stop_sequence": reply.stop_sequence,
            "reply_usage": reply.usage,
            "native": completion.native,
            "usage": completion.usage,
            "report": completion.report,
        }
    )


def read_completion(text: str) -> tuple[Completion, RequestId]:
    """Return the answer that `write_completion` wrote, and the request that it was given to."""
    kept: dict[str, Any] = json.loads(text)
    reply = Reply(
        parts=tuple(_PARTS[name](**fields) for name, fields in kept["parts"]),
        finish=kept["finish"],
        usage=_usage(kept["reply_usage"]),
        stop_sequence=kept["stop_sequence"],
    )
    native = kept["native"]
    completion = Completion(
        reply=reply,
        native=None if native is None else Native(**native),
        usage=Usage(**kept["usage"]),
        report=_report(kept["report"]),
    )
    return completion, RequestId(kept["request_id"])


def _report(fields: dict[str, Any]) -> RoutingReport:
    called = tuple(fields.pop("connection_calls", ()))
    return RoutingReport(**fields, connection_calls=called)


def _usage(fields: dict[str, Any] | None) -> Usage | None:
    return None if fields is None else Usage(**fields)
