"""What models thought before their calls, kept for those that want it back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import orjson

from turnout.core.ids import ModelId, ToolCallId
from turnout.core.json import JsonObject, as_object, as_objects, as_text
from turnout.gateway.dialog.conversation import Call, Conversation, Part, Reasoning, Turn

__all__ = ["Thought", "decode_thought", "encode_thought", "with_thoughts"]


@dataclass(frozen=True, slots=True)
class Thought:
    """What one model thought before one answer's calls."""

    maker: ModelId
    parts: tuple[Reasoning, ...]

    @property
    def text(self) -> str:
        """All of it, joined."""
        return "".join(part.text for part in self.parts)


def encode_thought(thought: Thought) -> str:
    """Return a thought as text to be kept."""
    parts = [
        {"text": part.text, "signature": part.signature, "encrypted": part.encrypted}
        for part in thought.parts
    ]
    return orjson.dumps({"maker": thought.maker, "parts": parts}).decode()


def decode_thought(kept: str) -> Thought:
    """Return a thought that `encode_thought` wrote."""
    body: JsonObject = as_object(orjson.loads(kept))
    parts = tuple(
        Reasoning(as_text(p.get("text")), as_text(p.get("signature")), as_text(p.get("encrypted")))
        for p in as_objects(body.get("parts"))
    )
    return Thought(ModelId(as_text(body.get("maker"))), parts)


def with_thoughts(
    said: Conversation,
    thoughts: Mapping[ToolCallId, Thought],
    model: ModelId,
    *,
    wanted: bool,
) -> Conversation:
    """Return the conversation with the thoughts that `model` may read.

    Where they are not `wanted` there are none. Else those of other models are left out, and an
    answer whose client dropped what this model thought has it again before its calls.
    """
    turns = tuple(
        replace(turn, parts=_parts(turn, thoughts, model) if wanted else _without(turn.parts))
        if turn.role == "assistant"
        else turn
        for turn in said.turns
    )
    return replace(said, turns=turns)


def _parts(turn: Turn, thoughts: Mapping[ToolCallId, Thought], model: ModelId) -> tuple[Part, ...]:
    known = next(
        (thoughts[p.id] for p in turn.parts if isinstance(p, Call) and p.id in thoughts), None
    )
    if known is not None and known.maker != model:
        return _without(turn.parts)
    own = tuple(
        p for p in turn.parts if not (isinstance(p, Reasoning) and p.maker not in ("", model))
    )
    if known is None:
        return own
    proven = any(part.signature or part.encrypted for part in known.parts)
    said = [part for part in own if isinstance(part, Reasoning)]
    # A client may have kept the words alone.
    if said and not (proven and not any(part.signature or part.encrypted for part in said)):
        return own
    return (*known.parts, *_without(own))


def _without(parts: Sequence[Part]) -> tuple[Part, ...]:
    return tuple(part for part in parts if not isinstance(part, Reasoning))
