"""Parts of a conversation, written as content blocks of the messages shape."""

import base64
import binascii
from urllib.parse import unquote_to_bytes

import orjson

from turnout.core.json import JsonObject, JsonValue, read_json
from turnout.errors import GatewayError
from turnout.gateway.dialog.conversation import (
    Call,
    Foreign,
    Media,
    Part,
    Reasoning,
    Refusal,
    Result,
    Text,
)
from turnout.gateway.dialog.custom import INPUT
from turnout.gateway.wire.messages.content.identifiers import Identifiers
from turnout.gateway.wire.messages.content.parts import FOREIGN_SIGNATURE

__all__ = ["CACHE_MARK", "tool_input", "write_block", "write_thought"]

CACHE_MARK: JsonObject = {"type": "ephemeral"}

_SAME_FORMS = {"image/jpg": "image/jpeg"}
_IMAGE_FORMS = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})


def write_block(part: Part, ids: Identifiers, *, thoughts_back: bool) -> JsonObject | None:
    """Return the block of a part; None where the shape has no use for it.

    `thoughts_back`: unsigned thoughts are wanted too. `GatewayError` (400) where the part cannot
    be said in this shape.
    """
    match part:
        case Text():
            # Texts of nothing but space are refused.
            said = part.text if part.text.strip() else ""
            return _marked({"type": "text", "text": said}, part.cached) if said else None
        case Refusal():
            return {"type": "text", "text": part.text} if part.text.strip() else None
        case Media():
            return _marked(_medium(part), part.cached)
        case Reasoning():
            return write_thought(part) if _is_readable(part, thoughts_back) else None
        case Call():
            block: JsonObject = {
                "type": "tool_use",
                "id": ids.of_call(part.id),
                "name": part.name,
                "input": tool_input(part),
            }
            return _marked(block, part.cached)
        case Result():
            return _marked(_result(part, ids), part.cached)
        case Foreign():
            return part.value if part.shape == "messages" else None


def tool_input(call: Call) -> JsonObject:
    """Return a call's arguments as the object that this shape wants.

    A custom tool's text, and what is no JSON object, stand in it as a text.
    """
    if call.type == "custom":
        return {INPUT: call.arguments}
    if not call.arguments.strip():
        return {}
    try:
        parsed = read_json(call.arguments)
    except orjson.JSONDecodeError:
        parsed = None
    return parsed if isinstance(parsed, dict) else {"arguments": call.arguments}


def write_thought(part: Reasoning) -> JsonObject:
    """Return a thought as a block; a signature is never null."""
    if part.encrypted and not part.text:
        return {"type": "redacted_thinking", "data": part.encrypted}
    signature = part.signature
    if part.encrypted and not signature:
        signature = FOREIGN_SIGNATURE + part.encrypted
    return {"type": "thinking", "thinking": part.text, "signature": signature}


def _is_readable(part: Reasoning, thoughts_back: bool) -> bool:
    signed = bool(part.signature) and not part.signature.startswith(FOREIGN_SIGNATURE)
    return thoughts_back or signed or bool(part.encrypted and not part.text)


def _result(part: Result, ids: Identifiers) -> JsonObject:
    inner = [write_block(each, ids, thoughts_back=False) for each in part.parts]
    blocks = [block for block in inner if block is not None]
    content: JsonValue = blocks
    match part.parts:
        case (Text(text=said, cached=False),) if blocks:
            content = said
        case _:
            pass
    block: dict[str, JsonValue] = {
        "type": "tool_result",
        "tool_use_id": ids.of_result(part.call_id),
    }
    if content:
        block["content"] = content
    if part.is_error:
        block["is_error"] = True
    return block


def _medium(part: Media) -> JsonObject:
    if part.kind == "audio":
        raise _unsayable("an audio part")
    form, data = _data_url(part.url)
    form = _SAME_FORMS.get(form, form)
    block = "image" if part.kind == "image" else "document"
    if part.kind == "image" and form and form not in _IMAGE_FORMS:
        raise _unsayable(f"an image of the form `{form[:80]}`")
    if not form:
        if not part.url.startswith(("https://", "http://")):
            raise _unsayable("a file by its id")
        source: JsonObject = {"type": "url", "url": part.url}
    elif form.startswith("text/") or form == "application/json":
        said = base64.b64decode(data).decode("utf-8", "replace")
        source = {"type": "text", "media_type": "text/plain", "data": said}
    else:
        source = {"type": "base64", "media_type": form, "data": data}
    titled: JsonObject = {"title": part.name} if part.name and block == "document" else {}
    return {"type": block, "source": source, **titled}


def _data_url(url: str) -> tuple[str, str]:
    """Return form and base64 content of a `data:` URL; both empty where it is none."""
    if not url.startswith("data:"):
        return "", ""
    head, _, data = url.removeprefix("data:").partition(",")
    form, *flags = head.split(";")
    try:
        if "base64" in flags:
            base64.b64decode(data, validate=True)
        else:
            data = base64.b64encode(unquote_to_bytes(data)).decode()
    except (ValueError, binascii.Error) as error:
        raise _unsayable("a `data:` URL that is no base64") from error
    return form.strip().lower() or "text/plain", data


def _marked(block: JsonObject, cached: bool) -> JsonObject:
    return {**block, "cache_control": CACHE_MARK} if cached else block


def _unsayable(what: str) -> GatewayError:
    return GatewayError(
        f"The request holds {what}, which the messages API of the chosen model cannot take.",
        status=400,
        code="unsupported_content",
        mend="Leave it out, or name a model that takes it.",
    )
