"""The task kind of a request that names none."""

from dataclasses import replace

import pytest

from turnout.core.inference import RoutingAsk, TaskKind
from turnout.gateway.decide.classify import ClassifiedTask, classify
from turnout.testing.exchange import PLAIN_REQUEST


def classified(text: object, ask: RoutingAsk | None = None) -> ClassifiedTask:
    """Classify a request whose user says `text`."""
    body = {"messages": [{"role": "user", "content": text}]}
    return classify(replace(PLAIN_REQUEST, body=body, ask=ask or RoutingAsk()))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Fix the bug in src/dates.py", "coding"),
        ("```\nTraceback (most recent call last):\n```", "coding"),
        ("Summarise this thread in two sentences.", "summarisation"),
        ("Extract all names and pull out their dates.", "extraction"),
        ("How many apples are left? Think step by step.", "reasoning"),
    ],
)
def test_words_show_the_kind(text: str, kind: TaskKind) -> None:
    """What the words show is called inferred."""
    assert classified(text) == ClassifiedTask(kind, "inferred")


def test_a_request_that_names_its_kind_is_believed() -> None:
    """The words do not matter then."""
    said = classified("Fix the bug in a.py", RoutingAsk(task="chat"))
    assert said == ClassifiedTask("chat", "request")


@pytest.mark.parametrize("text", ["Hello!", "", None, [], [{"type": "image_url"}], 7])
def test_nothing_to_go_by_is_general(text: object) -> None:
    """No sign, no guess, no error."""
    assert classified(text) == ClassifiedTask("general", "default")


def test_parts_of_a_message_are_read() -> None:
    """Content may come as a list of parts."""
    assert classified([{"type": "text", "text": "refactor the function"}]).kind == "coding"
