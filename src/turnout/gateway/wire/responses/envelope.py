"""The response object around an answer: what was asked, and how it ended."""

from collections.abc import Mapping

import orjson

from turnout.core.ids import RequestId
from turnout.core.inference import FinishReason
from turnout.core.json import JsonObject, JsonValue
from turnout.gateway.exchange import InferenceRequest

__all__ = ["Envelope", "ending"]

_ECHOED: Mapping[str, JsonValue] = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": None,
    "truncation": "disabled",
    "user": None,
}
"""Fields of a request that its response repeats, and what is said where they were not sent."""


class Envelope:
    """The response object of one request, whichever state it is in."""

    def __init__(self, request: InferenceRequest, request_id: RequestId, created: int) -> None:
        body = request.body
        sent = {name: body.get(name) for name in _ECHOED}
        echoed = {n: _ECHOED[n] if value is None else value for n, value in sent.items()}
        self._ours: JsonObject = {
            **echoed,
            "id": request_id,
            "object": "response",
            "created_at": created,
            "previous_response_id": request.previous,
            "store": request.keeps,
        }

    def native(self, response: JsonObject, model: str) -> dict[str, JsonValue]:
        """Return an upstream's response object under our id; what it says otherwise is kept."""
        ours = {n: self._ours[n] for n in ("id", "object", "previous_response_id", "store")}
        return {**self._ours, **response, **ours, "model": model}

    def written(self, model: str, said: JsonObject) -> dict[str, JsonValue]:
        """Return a response object of our own."""
        return {
            **self._ours,
            "model": model,
            "status": "in_progress",
            "completed_at": None,
            "error": None,
            "incomplete_details": None,
            "output": [],
            "usage": None,
            **said,
        }

    def text(self, model: str, said: JsonObject) -> str:
        """Return a response object without its output, as JSON to be kept."""
        whole = self.written(model, said)
        return orjson.dumps({n: v for n, v in whole.items() if n != "output"}).decode()


def ending(finish: FinishReason) -> dict[str, JsonValue]:
    """Return the fields that say how an answer ended."""
    if finish in {"length", "content_filter"}:
        reason = "max_output_tokens" if finish == "length" else "content_filter"
        return {"status": "incomplete", "incomplete_details": {"reason": reason}}
    return {"status": "completed", "incomplete_details": None}
