"""Answers as the stages hand them on."""

from dataclasses import dataclass, replace

from turnout.core.usage import Usage
from turnout.gateway.dialog.conversation import Call, Foreign
from turnout.gateway.dialog.events import Native, Reply
from turnout.gateway.exchange import InferenceRequest

__all__ = ["Answer", "estimate_usage", "not_streamed"]

_CHARS_PER_TOKEN = 4
_STREAM_FIELDS = frozenset({"stream", "stream_options"})


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer."""

    reply: Reply
    native: Native | None
    """The upstream's own, mended; None where it was made here."""


def estimate_usage(request: InferenceRequest, reply: Reply, counted: Usage | None) -> Usage:
    """Return what an answer used of which not everything was counted, by its length."""
    size = 0
    for part in reply.parts:
        if isinstance(part, Call):
            size += len(part.name) + len(part.arguments)
        elif not isinstance(part, Foreign):
            size += len(part.text)
    known = counted or Usage(request.input_tokens_estimate)
    output = max(known.output_tokens, -(-size // _CHARS_PER_TOKEN))
    return replace(known, output_tokens=output, estimated=True)


def not_streamed(request: InferenceRequest) -> InferenceRequest:
    """Return the same request, to be answered whole."""
    body = {name: value for name, value in request.body.items() if name not in _STREAM_FIELDS}
    return replace(request, stream=False, include_usage=False, body=body)
