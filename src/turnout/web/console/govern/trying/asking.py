"""A form in which one request is written, and what becomes of it."""

import re
from dataclasses import dataclass, replace
from typing import Final, get_args

import orjson

from turnout.core.inference import CALL_KIND_HEADER, Objective, StepKind, TaskKind
from turnout.core.json import JsonObject, JsonValue
from turnout.errors import UsageError
from turnout.gateway.dialog.conversation import Shape
from turnout.gateway.exchange import InferenceRequest
from turnout.gateway.policy.shapes import shape_of
from turnout.gateway.wire.shapes import HEARD
from turnout.web.console.visits import Form

__all__ = ["Asked", "Choices", "asked_of", "request_of", "streamed"]

_LONGEST: Final = 200_000
_LONGEST_RAW: Final = 2**20
_MOST_TOKENS: Final = 32_768
_USUAL_TOKENS: Final = 1_024
_STREAM_FIELDS: Final = frozenset({"stream", "stream_options"})
_NAMES: Final = re.compile(r"[\s,]+")


@dataclass(frozen=True, slots=True)
class Choices:
    """What the fields of the form offer."""

    models: tuple[str, ...]
    policies: tuple[str, ...]
    objectives: tuple[str, ...] = get_args(Objective)
    tasks: tuple[str, ...] = get_args(TaskKind)
    kinds: tuple[str, ...] = get_args(StepKind)


@dataclass(frozen=True, slots=True)
class Asked:
    """The fields as they were filled in."""

    prompt: str = ""
    instructions: str = ""
    model: str = "auto"
    optimize: str = ""
    task: str = ""
    policy: str = ""
    tools: str = ""
    call_kind: str = ""
    max_tokens: str = str(_USUAL_TOKENS)
    raw: str = ""
    """A whole request of any API; empty: the other fields count."""
    draft: str = ""
    """A policy that is not applied, to decide under; empty: the one in force."""


def asked_of(form: Form) -> Asked:
    """Return the fields of a form that was sent."""
    return Asked(
        prompt=form.text("prompt"),
        instructions=form.text("instructions").strip(),
        model=form.text("model").strip() or "auto",
        optimize=form.text("optimize"),
        task=form.text("task"),
        policy=form.text("policy").strip(),
        tools=form.text("tools").strip(),
        call_kind=form.text("call_kind"),
        max_tokens=form.text("max_tokens").strip() or str(_USUAL_TOKENS),
        raw=form.text("raw").strip(),
        draft=form.text("draft").strip(),
    )


def request_of(asked: Asked) -> InferenceRequest:
    """Return the request that the fields make; `UsageError` or `GatewayError` where it is none."""
    headers = {CALL_KIND_HEADER: asked.call_kind} if asked.call_kind else {}
    if asked.raw:
        if len(asked.raw) > _LONGEST_RAW:
            raise UsageError(f"A request has at most {_LONGEST_RAW:,} characters here.")
        raw = asked.raw.encode()
        shape: Shape = shape_of(raw, headers)
    else:
        raw, shape = orjson.dumps(_body(asked)), "chat"
    request = HEARD[shape].parse(raw, headers)
    # What a pasted request says of it does not count: the page knows how it can be told.
    body = {name: value for name, value in request.body.items() if name not in _STREAM_FIELDS}
    return replace(request, stream=False, include_usage=False, body=body)


def streamed(request: InferenceRequest) -> InferenceRequest:
    """Return the same request, to be answered piece by piece."""
    return replace(request, stream=True, body={**request.body, "stream": True})


def _body(asked: Asked) -> JsonObject:
    if not asked.prompt.strip():
        raise UsageError("The prompt is empty.", mend="Write what the model is asked.")
    if len(asked.prompt) + len(asked.instructions) > _LONGEST:
        raise UsageError(f"Prompt and instructions have at most {_LONGEST:,} characters here.")
    said: list[JsonValue] = [{"role": "user", "content": asked.prompt}]
    if asked.instructions:
        said.insert(0, {"role": "system", "content": asked.instructions})
    routing = {"optimize": asked.optimize, "task": asked.task, "policy": asked.policy}
    body: dict[str, JsonValue] = {
        "model": asked.model,
        "messages": said,
        "max_tokens": _tokens(asked.max_tokens),
        "routing": {name: value for name, value in routing.items() if value},
    }
    names = [name for name in _NAMES.split(asked.tools) if name]
    if names:
        body["tools"] = [{"type": "function", "function": {"name": name}} for name in names]
    return body


def _tokens(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 6):
        raise UsageError("The longest answer is a number of tokens.")
    if not 1 <= int(text) <= _MOST_TOKENS:
        raise UsageError(f"The longest answer is 1 to {_MOST_TOKENS:,} tokens.")
    return int(text)
