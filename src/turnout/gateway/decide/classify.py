"""What kind of task a request is, where it does not say."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from turnout.core.inference import TaskKind, TaskSource
from turnout.core.json import JsonObject, as_objects, as_text
from turnout.gateway.exchange import InferenceRequest

__all__ = ["ClassifiedTask", "classify"]

_LOOKED_AT = 1_000
"""Characters at either end of a message; this runs before every call that names no kind."""

_WORD = re.compile(r"\w+(?:\.\w+)?")

_WORDS: Mapping[TaskKind, frozenset[str]] = {
    "summarisation": frozenset({"summarise", "summarize", "summary", "tldr"}),
    "extraction": frozenset({"extract", "extraction", "field", "fields"}),
    "coding": frozenset(
        {"bug", "code", "compile", "function", "pytest", "refactor", "repository", "traceback"}
    ),
    "reasoning": frozenset({"calculate", "deduce", "equation", "probability", "prove", "puzzle"}),
}
_PHRASES: Mapping[TaskKind, tuple[str, ...]] = {
    "summarisation": ("tl;dr", "in one sentence", "in two sentences", "in three sentences"),
    "extraction": ("list all", "list every", "pull out", "as json"),
    "coding": ("```", "diff --git", "stack trace", "unit test", "failing test"),
    "reasoning": ("step by step", "how many"),
}
_SOURCE_FILES = frozenset(
    {"c", "cc", "cpp", "go", "h", "java", "js", "py", "pyi", "rb", "rs", "sql", "ts", "tsx"}
)


@dataclass(frozen=True, slots=True)
class ClassifiedTask:
    """A task kind, and who says so."""

    kind: TaskKind
    source: TaskSource


def classify(request: InferenceRequest) -> ClassifiedTask:
    """Return the kind that the request names, else the one its words show, else `general`.

    The kind with the most different signs wins, the earlier of the list on a tie.
    """
    if request.ask.task is not None:
        return ClassifiedTask(request.ask.task, "request")
    text = "\n".join(_instructions(request.body)).lower()
    words = frozenset(_WORD.findall(text))
    counts = {kind: _signs(kind, text, words) for kind in _WORDS}
    best = max(counts, key=lambda kind: counts[kind])
    if counts[best] == 0:
        return ClassifiedTask("general", "default")
    return ClassifiedTask(best, "inferred")


def _signs(kind: TaskKind, text: str, words: frozenset[str]) -> int:
    count = len(words & _WORDS[kind]) + sum(phrase in text for phrase in _PHRASES[kind])
    if kind == "coding":
        count += sum(word.partition(".")[2] in _SOURCE_FILES for word in words)
    return count


def _instructions(body: JsonObject) -> Iterator[str]:
    """Yield the standing instructions and the last thing that was asked."""
    messages = as_objects(body.get("messages"))
    standing = [m for m in messages if m.get("role") in {"system", "developer"}][:1]
    asked = [m for m in messages if m.get("role") == "user"][-1:]
    for message in (*standing, *asked):
        content = message.get("content")
        for text in (as_text(content), *(as_text(p.get("text")) for p in as_objects(content))):
            yield text if len(text) <= 2 * _LOOKED_AT else text[:_LOOKED_AT] + text[-_LOOKED_AT:]
