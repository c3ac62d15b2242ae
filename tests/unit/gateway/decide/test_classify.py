"""The task kind of a request that names none."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.core.inference import RoutingAsk, TaskKind
from turnout.gateway.decide.classify import ClassifiedTask, classify
from turnout.testing.exchange import PLAIN_REQUEST


def classified(topic: str, ask: RoutingAsk | None = None) -> ClassifiedTask:
    """Classify a request about `topic`."""
    return classify(replace(PLAIN_REQUEST, topic=topic, ask=ask or RoutingAsk()))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Fix the bug in src/dates.py", "coding"),
        ("Look at `dates.py`, (utils.go): and main.rs.", "coding"),
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


@pytest.mark.parametrize("text", ["Hello!", "", "...", "e.g. this. And that", "go", ".py"])
def test_nothing_to_go_by_is_general(text: str) -> None:
    """No sign, no guess, no error."""
    assert classified(text) == ClassifiedTask("general", "default")


@given(st.text())
def test_any_text_has_one_kind_and_always_the_same(text: str) -> None:
    """Whatever characters it is made of."""
    assert classified(text) == classified(text)
