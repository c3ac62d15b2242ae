"""Responses that are kept, so that a later request may go on from them."""

import time
from dataclasses import replace

import orjson

from turnout.core.govern.closing import StoredResponse
from turnout.core.ids import RequestId
from turnout.core.json import JsonValue, as_objects
from turnout.core.tools import Holder
from turnout.errors import GatewayError
from turnout.gateway.dialog.events import Reply
from turnout.gateway.exchange import Caller, InferenceRequest
from turnout.gateway.ports import ResponseStore
from turnout.gateway.wire.responses import declared_tools
from turnout.gateway.wire.responses.answer import write_output, write_usage
from turnout.gateway.wire.responses.envelope import Envelope, ending
from turnout.gateway.wire.responses.items import input_items
from turnout.gateway.wire.responses.request import continue_request

__all__ = ["continued", "missing", "stored_again", "stored_response"]


async def continued(
    store: ResponseStore, caller: Caller, request: InferenceRequest
) -> tuple[InferenceRequest, Holder | None]:
    """Return the request with the conversation that it goes on from, and whose that is.

    It is somebody's while tool calls are open. `GatewayError`: 404 where the caller has no such
    response, 400 where calls and results do not match.
    """
    if request.previous is None:
        return request, None
    before = await store.get(caller.key, RequestId(request.previous))
    if before is None:
        raise missing(request.previous, "previous_response_id")
    whole = continue_request(request, as_objects(orjson.loads(before.items)))
    return whole, before.holder if whole.open_calls else None


def stored_response(
    caller: Caller,
    request: InferenceRequest,
    request_id: RequestId,
    reply: Reply,
    holder: Holder,
) -> StoredResponse | None:
    """Return what is kept of an answer; None where the request asks for nothing to be kept.

    Standing instructions are of one request alone, and no part of the conversation.
    """
    if not request.keeps:
        return None
    said = ending(reply.finish)
    output: list[JsonValue]
    if reply.origin is not None and reply.origin.shape == "responses":
        output = list(as_objects(reply.origin.value.get("output")))
    else:
        cut = said["status"] == "incomplete"
        tools = declared_tools(request)
        output = write_output(reply.parts, tools, request_id, holder.model, cut=cut)
    said["usage"] = None if reply.usage is None else write_usage(reply.usage)
    envelope = Envelope(request, request_id, int(time.time()))
    return StoredResponse(
        scope=caller.key,
        id=request_id,
        items=orjson.dumps([*input_items(request.body), *output]).decode(),
        holder=holder,
        made=len(output),
        envelope=envelope.text(holder.model, said),
    )


async def stored_again(
    store: ResponseStore, caller: Caller, request_id: RequestId, *, replay_of: RequestId
) -> StoredResponse | None:
    """Return what is kept where an answer is given again: the same under the new id.

    None where the first was not stored, or was forgotten.
    """
    first = await store.get(caller.key, replay_of)
    if first is None:
        return None
    envelope = {**orjson.loads(first.envelope), "id": request_id}
    return replace(first, id=request_id, envelope=orjson.dumps(envelope).decode())


def missing(wanted: str, param: str | None) -> GatewayError:
    """Return the refusal (404) of a response that the caller's key has not stored."""
    return GatewayError(
        f"There is no stored response `{wanted}`.",
        status=404,
        code="previous_response_not_found" if param else "response_not_found",
        param=param,
        mend="Responses are kept for the key that asked for them, unless `store` is false.",
    )
