"""A chat completions answer that is not streamed."""

import orjson

from turnout.core.ids import RequestId
from turnout.gateway.exchange import Completion
from turnout.gateway.wire.chat_usage import read_usage, write_usage
from turnout.gateway.wire.report import write_report

__all__ = ["write_completion"]


def write_completion(completion: Completion, request_id: RequestId) -> bytes:
    """Return the body: the upstream's, under our request id and with the `routing` report.

    Fields that we do not know are kept; `model` names the catalog's model.
    """
    report = completion.report
    body = {
        **completion.body,
        "id": request_id,
        "object": "chat.completion",
        "model": report.model,
        "routing": write_report(report),
    }
    if read_usage(body.get("usage")) is None:
        body["usage"] = write_usage(completion.usage)
    return orjson.dumps(body)
