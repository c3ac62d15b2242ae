"""Tool loops as clients of each shape send them."""

from dataclasses import dataclass
from typing import Any

import orjson
from tests.integration.spoken import Heard, Spoken

from turnout.core.json import JsonObject

__all__ = ["Called", "call_ids", "said"]

ASKED: JsonObject = {"role": "user", "content": "Hello"}


@dataclass(frozen=True)
class Called:
    """A call of the history, with what came of it."""

    id: str
    path: str = "a.py"
    result: str | None = "text"
    """None: it has none."""
    made: bool = True
    """False: the history holds the result alone."""

    @property
    def arguments(self) -> str:
        """Return them as a model writes them."""
        return orjson.dumps({"path": self.path}).decode()


def said(
    shape: Spoken,
    *calls: Called,
    words: object = "",
    between: str = "",
    after: str = "",
    backwards: bool = False,
) -> JsonObject:
    """Return the fields of a request whose history has one answer that calls `read_file`.

    `words`: what it says beside the calls, whatever form that has. `between`: what the user says
    before the results; `after`: behind them. `backwards`: the results come in the other order.
    """
    results = [call for call in calls if call.result is not None]
    results = results[::-1] if backwards else results
    made = [call for call in calls if call.made]
    early = [{"role": "user", "content": between}] if between else []
    late = [{"role": "user", "content": after}] if after else []
    match shape:
        case "chat":
            answered = {"role": "assistant", "content": words, "tool_calls": _in_chat(made)}
            told = [{"role": "tool", "tool_call_id": c.id, "content": c.result} for c in results]
            return {"messages": [ASKED, *([answered] if made else []), *early, *told, *late]}
        case "messages":
            return {"messages": _in_messages(made, results, words, between, after)}
        case "responses":
            items = [
                {
                    "type": "function_call",
                    "call_id": call.id,
                    "name": "read_file",
                    "arguments": call.arguments,
                }
                for call in made
            ]
            outputs = [
                {"type": "function_call_output", "call_id": call.id, "output": call.result}
                for call in results
            ]
            return {"input": [ASKED, *items, *early, *outputs, *late], "store": False}


def call_ids(shape: Spoken, heard: Heard) -> list[str]:
    """Return the ids of the calls of an answer that came whole."""
    body: Any = orjson.loads(heard.raw)
    match shape:
        case "chat":
            return [call["id"] for call in body["choices"][0]["message"]["tool_calls"]]
        case "messages":
            return [block["id"] for block in body["content"] if block["type"] == "tool_use"]
        case "responses":
            return [i["call_id"] for i in body["output"] if i["type"] == "function_call"]


def _in_chat(calls: list[Called]) -> list[JsonObject]:
    return [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": "read_file", "arguments": call.arguments},
        }
        for call in calls
    ]


def _in_messages(
    made: list[Called], results: list[Called], words: object, between: str, after: str
) -> list[JsonObject]:
    blocks: list[Any] = [{"type": "text", "text": words}] if words == "" else []
    blocks += [
        {"type": "tool_use", "id": c.id, "name": "read_file", "input": {"path": c.path}}
        for c in made
    ]
    told: list[Any] = [{"type": "text", "text": between}] if between else []
    told += [
        {"type": "tool_result", "tool_use_id": call.id, "content": call.result} for call in results
    ]
    told += [{"type": "text", "text": after}] if after else []
    answered = [{"role": "assistant", "content": blocks}] if made else []
    return [ASKED, *answered, *([{"role": "user", "content": told}] if told else [])]
