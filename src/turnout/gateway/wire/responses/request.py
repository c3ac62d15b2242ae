"""A responses request: bytes in, `InferenceRequest` out."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import orjson

from turnout.core.json import JsonObject, as_object, as_text
from turnout.gateway.exchange import DeclaredTool, InferenceRequest
from turnout.gateway.wire.body import estimate_tokens, parse_body, topic
from turnout.gateway.wire.extensions import EXTENSIONS, read_extensions
from turnout.gateway.wire.fields import flag, invalid, objects, positive, text
from turnout.gateway.wire.responses.items import check_pairs, input_items, survey
from turnout.gateway.wire.responses.tools import Tools, read_choice, read_tools

__all__ = ["continue_request", "parse_responses_request"]

_PASSED_HEADERS = ("openai-beta", "originator", "version")
_LONGEST_ID = 512


def parse_responses_request(raw: bytes, headers: Mapping[str, str]) -> InferenceRequest:
    """Parse a request as far as routing and policy need; fields that we do not know are kept.

    `headers` has lower-case names. `GatewayError` (400) names the field that is wrong.
    """
    body = parse_body(raw)
    model = text(body, "model", "model")
    if model is None:
        raise invalid("`model` is missing.", "model", mend="Send `auto` or a model id.")
    _refuse_unkept(body)
    previous = text(body, "previous_response_id", "previous_response_id", longest=_LONGEST_ID)
    given = input_items(body)
    if not given and previous is None and body.get("prompt") is None:
        raise invalid("`input` must be a text, or hold at least one item.", "input")
    seen = survey(given)
    if previous is None:
        check_pairs(given)
    tools = read_tools(body, given)
    extensions = read_extensions(body, headers)
    instructions = _instructions(body)
    asks_task = extensions.ask.task is None
    return InferenceRequest(
        body={name: value for name, value in body.items() if name not in EXTENSIONS},
        model=model,
        stream=flag(body, "stream", "stream") or False,
        include_usage=True,
        tools=_declared(body, tools),
        tool_choice=read_choice(body, tools),
        max_tokens=positive(body, "max_output_tokens", "max_output_tokens"),
        open_calls=tuple(seen.open_calls),
        ask=extensions.ask,
        session=extensions.session,
        input_tokens_estimate=estimate_tokens(len(raw) - seen.attached_size, seen.attachments),
        wants_json_schema=_wants_json_schema(body),
        thinking=extensions.thinking,
        call_kind=extensions.call_kind,
        idempotency_key=extensions.idempotency_key,
        trace=extensions.trace,
        shape="responses",
        topic=topic((instructions, *seen.standing), seen.asked) if asks_task else "",
        modalities=frozenset(seen.modalities),
        past_calls=tuple(seen.past_calls),
        previous=previous,
        keeps=flag(body, "store", "store") is not False,
        headers={name: headers[name] for name in _PASSED_HEADERS if name in headers},
        connections=tools.connections,
    )


def continue_request(request: InferenceRequest, before: Sequence[JsonObject]) -> InferenceRequest:
    """Return the request with the items of the stored conversation before its own.

    `GatewayError` (400) where calls and results do not match then.
    """
    own = input_items(request.body)
    whole = [*before, *own]
    check_pairs(whole)
    seen, new = survey(whole), survey(own)
    tools = read_tools(request.body, whole)
    earlier = survey(before)
    size = len(orjson.dumps(before)) - earlier.attached_size
    return replace(
        request,
        body={**request.body, "input": whole},
        tools=_declared(request.body, tools),
        open_calls=tuple(seen.open_calls),
        past_calls=tuple(seen.past_calls),
        input_tokens_estimate=request.input_tokens_estimate
        + estimate_tokens(size, earlier.attachments),
        modalities=frozenset(seen.modalities),
        topic=request.topic if new.asked else topic((request.topic,), seen.asked),
        connections=tools.connections,
    )


def _declared(body: JsonObject, tools: Tools) -> tuple[DeclaredTool, ...]:
    # A prompt that the provider stores may bring tools that nobody sees here.
    stored = (DeclaredTool("prompt"),) if body.get("prompt") is not None else ()
    return (*tools.names(), *stored)


def _instructions(body: JsonObject) -> str:
    said = body.get("instructions")
    if said is None or isinstance(said, str):
        return said or ""
    raise invalid("`instructions` must be a text.", "instructions")


def _refuse_unkept(body: JsonObject) -> None:
    if body.get("background"):
        raise invalid(
            "`background` is not served: an answer is given on the request that asks for it.",
            "background",
            mend="Leave it out, and stream where answers take long.",
        )
    if body.get("conversation") is not None:
        raise invalid(
            "`conversation` is not served: the gateway keeps responses, no conversations.",
            "conversation",
            mend="Send `previous_response_id`, or the whole conversation as `input`.",
        )


def _wants_json_schema(body: JsonObject) -> bool:
    config = objects(body, "text", "text") or {}
    objects(config, "format", "text.format")
    return as_text(as_object(config.get("format")).get("type")) == "json_schema"
