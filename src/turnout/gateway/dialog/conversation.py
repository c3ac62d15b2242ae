"""A conversation as every shape can say it."""

from dataclasses import dataclass
from typing import Literal

from turnout.core.ids import ToolCallId
from turnout.core.json import JsonObject

__all__ = [
    "Call",
    "CallType",
    "Conversation",
    "Foreign",
    "Media",
    "Part",
    "Reasoning",
    "Refusal",
    "Result",
    "Sampling",
    "Schema",
    "Shape",
    "Text",
    "ToolSpec",
    "Turn",
]

Shape = Literal["chat", "messages", "responses"]
"""An API: OpenAI's chat completions, Anthropic's messages, OpenAI's responses."""

CallType = Literal["function", "custom"]
"""function: the arguments are JSON; custom: one free text."""


@dataclass(frozen=True, slots=True)
class Text:
    """Words."""

    text: str
    cached: bool = False
    """Whether a cache mark follows: all up to here is worth keeping in a prompt cache."""


@dataclass(frozen=True, slots=True)
class Media:
    """An image, a sound or a file."""

    kind: Literal["image", "audio", "file"]
    url: str
    """An address, or the content as a `data:` URL."""
    name: str = ""
    detail: str = ""
    """How closely an image is to be looked at; empty: unsaid."""
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Reasoning:
    """What a model thought; it goes back to that model alone."""

    text: str
    signature: str = ""
    """Proof of its maker that nobody changed it; empty: none."""
    encrypted: str = ""
    """The same in a form that only its maker can read; empty: none."""
    maker: str = ""
    """Id of that model; empty: unknown. No other model is sent it."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A model's words for why it will not answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of the model."""

    id: ToolCallId
    name: str
    arguments: str
    """As the model wrote them; for a custom tool its free text."""
    type: CallType = "function"
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a call."""

    call_id: ToolCallId
    parts: tuple[Text | Media, ...]
    is_error: bool = False
    type: CallType = "function"
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Foreign:
    """Something that one shape alone can say; it is not translated."""

    shape: Shape
    value: JsonObject


Part = Text | Media | Reasoning | Refusal | Call | Result | Foreign


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side says; tool results are the user's."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[Part, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool that the request declares."""

    name: str
    description: str = ""
    parameters: JsonObject | None = None
    """JSON Schema of the arguments; None: unsaid."""
    strict: bool | None = None
    type: CallType = "function"
    cached: bool = False
    foreign: Foreign | None = None
    """The declaration itself, of a tool that the provider runs, or that has a form of its own."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A JSON Schema that the answer is to satisfy."""

    name: str
    schema: JsonObject
    strict: bool | None = None
    description: str = ""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the answer is to be drawn; None: unsaid."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """All that a request says to a model."""

    turns: tuple[Turn, ...]
    """The standing instructions are the system turns that come first."""
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str = "auto"
    """`auto`, `required`, `none`, or the name of one tool."""
    parallel_calls: bool | None = None
    sampling: Sampling = Sampling()
    schema: Schema | None = None
    any_json: bool = False
    """Whether the answer is to be some JSON object."""
    effort: str | None = None
    """How hard to think, in OpenAI's words: none, minimal, low, medium, high, xhigh."""
    thinking_budget: int | None = None
    """Tokens to think for, in Anthropic's terms."""
    end_user: str | None = None
