"""What kind of task a request is, where it does not say."""

import string
from collections.abc import Mapping
from typing import NamedTuple

from turnout.core.inference import TaskKind, TaskSource
from turnout.gateway.exchange import InferenceRequest

__all__ = ["ClassifiedTask", "classify"]

_BLANKS = str.maketrans(dict.fromkeys(string.punctuation.translate({ord("."): None}), " "))
"""Everything between words but the dot, which file names have."""

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


class ClassifiedTask(NamedTuple):
    """A task kind, and who says so."""

    kind: TaskKind
    source: TaskSource


def classify(request: InferenceRequest) -> ClassifiedTask:
    """Return the kind that the request names, else the one its topic shows, else `general`.

    The kind with the most different signs wins, the earlier of the list on a tie.
    """
    if request.ask.task is not None:
        return ClassifiedTask(request.ask.task, "request")
    if not request.topic:
        return ClassifiedTask("general", "default")
    text = request.topic.lower()
    words = set(text.translate(_BLANKS).split())
    dotted = {word.strip(".") for word in words if "." in word}
    words |= dotted
    best: TaskKind = "general"
    most = 0
    for kind, signs in _WORDS.items():
        count = len(words & signs) + len([phrase for phrase in _PHRASES[kind] if phrase in text])
        if kind == "coding":
            count += len([word for word in dotted if _is_source(word)])
        if count > most:
            best, most = kind, count
    return ClassifiedTask(best, "inferred" if most else "default")


def _is_source(word: str) -> bool:
    stem, _, ending = word.rpartition(".")
    return bool(stem) and ending in _SOURCE_FILES
