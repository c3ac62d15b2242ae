"""What is asked in an examination, and what answers are right."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import orjson

from turnout.core.ids import ToolCallId
from turnout.core.json import JsonObject, JsonValue
from turnout.gateway.dialog.conversation import (
    Call,
    Conversation,
    Result,
    Sampling,
    Text,
    ToolSpec,
    Turn,
)
from turnout.gateway.measure.asking import Heard

__all__ = ["EXERCISES", "TIMED", "CheckName", "Exercise", "wrong_with"]

CheckName = Literal[
    "call", "right tool", "exact arguments", "parallel calls", "after a result", "no call"
]

Wanted = tuple[str, JsonObject]
"""A tool's name, and the arguments that it must get."""


@dataclass(frozen=True, slots=True)
class Exercise:
    """One request whose right answer is known."""

    check: CheckName
    said: Conversation
    wanted: tuple[Wanted, ...]
    """The calls of a right answer, in any order; none: it is text."""
    streamed: bool = False


def wrong_with(exercise: Exercise, heard: Heard) -> str:
    """Return what is wrong with an answer, in words for people; empty where it is right."""
    calls = heard.reply.calls
    if heard.repairs:
        return f"had to be mended: {', '.join(heard.repairs)}"
    if not exercise.wanted:
        if calls:
            return f"called {calls[0].name} where nothing was to be called"
        return "" if heard.reply.text.strip() else "said nothing"
    if not calls:
        return "called nothing"
    if sorted(call.name for call in calls) != sorted(name for name, _ in exercise.wanted):
        return f"called {', '.join(call.name for call in calls)}"
    given = [(call.name, _arguments(call)) for call in calls]
    missed = [wanted for wanted in exercise.wanted if wanted not in given]
    return f"called {missed[0][0]} with other arguments" if missed else ""


def _arguments(call: Call) -> JsonValue:
    try:
        parsed: JsonValue = orjson.loads(call.arguments)
    except orjson.JSONDecodeError:
        return None
    return parsed


def _tool(
    name: str, description: str, required: Sequence[str], **properties: JsonValue
) -> ToolSpec:
    return ToolSpec(
        name,
        description,
        {
            "type": "object",
            "properties": properties,
            "required": list(required),
            "additionalProperties": False,
        },
    )


_TEXT: Final[JsonObject] = {"type": "string"}
_READ = _tool("read_file", "Read a file of the project.", ["path"], path=_TEXT)
_WRITE = _tool("write_file", "Write a file.", ["path", "content"], path=_TEXT, content=_TEXT)
_SEARCH = _tool("search_text", "Find the files that hold a text.", ["query"], query=_TEXT)
_TESTS = _tool("run_tests", "Run the tests whose names match.", ["selector"], selector=_TEXT)
_WEATHER = _tool("get_weather", "Return the weather of a city now.", ["city"], city=_TEXT)
_TICKET = _tool(
    "open_ticket",
    "Open a ticket.",
    ["title", "labels", "owner"],
    title=_TEXT,
    labels={"type": "array", "items": {"type": "string"}},
    owner={
        "type": "object",
        "properties": {"name": {"type": "string"}, "team": {"type": "integer"}},
        "required": ["name", "team"],
        "additionalProperties": False,
    },
)
_ALL: Final = (_READ, _WRITE, _SEARCH, _TESTS, _WEATHER, _TICKET)


def _user(text: str) -> Turn:
    return Turn("user", (Text(text),))


def _simple(path: str, *, streamed: bool = False) -> Exercise:
    said = Conversation((_user(f"Read the file {path} with the tool."),), (_READ,))
    return Exercise("call", said, (("read_file", {"path": path}),), streamed)


def _choice(prompt: str, name: str, arguments: JsonObject, *, streamed: bool = False) -> Exercise:
    return Exercise(
        "right tool", Conversation((_user(prompt),), _ALL), ((name, arguments),), streamed
    )


def _exact(content: str) -> Exercise:
    prompt = (
        "Write the file note.txt. Its content is exactly what stands between the lines of "
        f"equals signs, without a line end before or after it:\n=====\n{content}\n====="
    )
    wanted: JsonObject = {"path": "note.txt", "content": content}
    return Exercise(
        "exact arguments",
        Conversation((_user(prompt),), (_READ, _WRITE)),
        (("write_file", wanted),),
    )


def _nested() -> Exercise:
    prompt = (
        'Open a ticket with the title "Login fails", the labels "bug" and "urgent" in that order, '
        'and the owner named "Ada" of team 7.'
    )
    owner: JsonObject = {"name": "Ada", "team": 7}
    wanted: JsonObject = {"title": "Login fails", "labels": ["bug", "urgent"], "owner": owner}
    said = Conversation((_user(prompt),), _ALL)
    return Exercise("exact arguments", said, (("open_ticket", wanted),))


def _parallel(*cities: str) -> Exercise:
    prompt = (
        f"What is the weather now in {', '.join(cities)}? Make one tool call for each city, "
        "all of them at once. Give the name of the city alone, as I wrote it."
    )
    wanted = tuple[Wanted, ...](("get_weather", {"city": city}) for city in cities)
    return Exercise("parallel calls", Conversation((_user(prompt),), (_WEATHER, _READ)), wanted)


def _after(query: str, path: str) -> Exercise:
    call = Call(ToolCallId("call_1"), "search_text", orjson.dumps({"query": query}).decode())
    turns = (
        _user(f'Search for the text "{query}", then read the one file that holds it.'),
        Turn("assistant", (call,)),
        Turn("user", (Result(call.id, (Text(f"1 file: {path}"),)),)),
    )
    return Exercise("after a result", Conversation(turns, _ALL), (("read_file", {"path": path}),))


def _none(prompt: str) -> Exercise:
    return Exercise("no call", Conversation((_user(prompt),), _ALL), ())


EXERCISES: Final = (
    _simple("README.md"),
    _simple("src/main.py", streamed=True),
    _simple("docs/index.rst"),
    _simple("setup.cfg", streamed=True),
    _choice("Which files hold the text TODO?", "search_text", {"query": "TODO"}),
    _choice("Run the tests that match test_login.", "run_tests", {"selector": "test_login"}),
    _choice("How is the weather in Oslo?", "get_weather", {"city": "Oslo"}, streamed=True),
    _choice("Show me pyproject.toml.", "read_file", {"path": "pyproject.toml"}),
    _exact("He said \"yes\" and 'no', then left C:\\temp."),
    _exact("first line\n\tsecond line\n\n    fourth line"),
    _exact("Zürich – naïve café, 東京, 🚀"),
    _nested(),
    _parallel("Lima", "Cairo"),
    _parallel("Rome", "Quito", "Delhi"),
    _parallel("Paris", "Tokyo", "Accra"),
    _after("max_retries", "src/client/retry.py"),
    _after("Straße", "src/orte/straße.py"),
    _after("db_url", "config/settings.toml"),
    _none("Say hello in French."),
    _none("What is 17 + 25? Answer with the number alone."),
    _none("Name one colour of the rainbow."),
    _none("Thank you, that is all for today."),
)
"""Every one is asked once; the order is such that an early end has seen a bit of each."""


TIMED: Final = tuple(
    Conversation(
        (_user(f"Count from one to sixty in words, in {language}, separated by commas."),),
        sampling=Sampling(max_tokens=160),
    )
    for language in ("English", "French", "Spanish")
)
"""Long enough answers to time."""
