"""Scripted models for check-ups: one that does everything right, and its flawed brothers."""

import re
from dataclasses import dataclass, field

from turnout.core.json import JsonObject, as_text
from turnout.evals.checkup.exercises import EXERCISES, Exercise
from turnout.testing.model_server import Call, RecordedRequest, Turn

SOLUTIONS = {
    "discount": (
        "def total(prices, discount=0):\n    return sum(prices) * (100 - discount) / 100\n"
    ),
    "settings": (
        "def parse(text):\n"
        "    found = {}\n"
        "    for line in map(str.strip, text.splitlines()):\n"
        '        if line and not line.startswith("#") and "=" in line:\n'
        '            name, _, value = line.partition("=")\n'
        "            found[name.strip()] = value.strip()\n"
        "    return found\n"
    ),
    "spans": (
        "def merge(spans):\n"
        "    merged = []\n"
        "    for start, end in sorted(spans):\n"
        "        if merged and start <= merged[-1][1]:\n"
        "            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))\n"
        "        else:\n"
        "            merged.append((start, end))\n"
        "    return merged\n"
    ),
    "recent": (
        "class Recent:\n"
        "    def __init__(self, size):\n"
        "        self.size, self.entries = size, {}\n\n"
        "    def get(self, key):\n"
        "        if key not in self.entries:\n"
        "            return None\n"
        "        self.entries[key] = self.entries.pop(key)\n"
        "        return self.entries[key]\n\n"
        "    def put(self, key, value):\n"
        "        self.entries.pop(key, None)\n"
        "        self.entries[key] = value\n"
        "        if len(self.entries) > self.size:\n"
        "            del self.entries[next(iter(self.entries))]\n"
    ),
    "roman": (
        "SIGNS = ((1000, 'M'), (900, 'CM'), (500, 'D'), (400, 'CD'), (100, 'C'), (90, 'XC'),\n"
        "         (50, 'L'), (40, 'XL'), (10, 'X'), (9, 'IX'), (5, 'V'), (4, 'IV'), (1, 'I'))\n\n\n"
        "def to_roman(number):\n"
        "    if not 1 <= number <= 3999:\n"
        "        raise ValueError(number)\n"
        "    text = ''\n"
        "    for value, sign in SIGNS:\n"
        "        text += sign * (number // value)\n"
        "        number %= value\n"
        "    return text\n\n\n"
        "def from_words(text):\n"
        '    return ["zero", "one", "two", "three"].index(text)\n'
    ),
    "wrap": (
        "def wrap(text, width):\n"
        "    lines = []\n"
        "    for word in text.split():\n"
        "        if lines and len(lines[-1]) + 1 + len(word) <= width:\n"
        '            lines[-1] += " " + word\n'
        "        else:\n"
        "            lines.append(word)\n"
        "    return lines\n"
    ),
}
"""The right text of the file of each exercise."""


@dataclass
class Model:
    """Does everything right, but for what is said; on the surface `files`."""

    forgets: bool = False
    looks_again: bool = False
    malformed: bool = False
    """Sends arguments that are no JSON object, each time before the right ones."""
    meddles: bool = False
    """Tidies up another file, too."""
    slow: bool = False
    """Writes code that is wrong, before it writes the right one."""
    lazy: bool = False
    """Says that it is done, and has done nothing."""
    garbled: set[int] = field(default_factory=set)
    """Lengths of conversations in which it has sent malformed arguments."""

    def __call__(self, request: RecordedRequest) -> Turn:
        """Answer a request."""
        if not request.tool_names:
            return Turn("1. Do it.")
        prompt = "\n".join(as_text(m.get("content")) for m in request.messages)
        exercise = next((each for each in EXERCISES if each.prompt in prompt), None)
        turn = self._notes(request) if exercise is None else self._code(request, exercise)
        at = len(request.messages)
        if self.malformed and turn.calls and at not in self.garbled:
            self.garbled |= {at, at + 2}
            return Turn(calls=(Call(turn.calls[0].name, "{path: oops"),))
        return turn

    def _notes(self, request: RecordedRequest) -> Turn:
        said = [as_text(m.get("content")) for m in request.messages]
        first = next(found[1] for text in said if (found := re.search(r"the note (\S+)\. ", text)))
        phrases = re.findall(r"pass phrase of this note is (\S+)\.", "\n".join(_sound(request)))
        following = [re.search(r"Read next: (\S+)", text) for text in _sound(request)]
        if not phrases:
            return _read(first)
        if following[-1] is not None:
            return _read(following[-1][1])
        if self.looks_again and len(phrases) == len(set(phrases)):
            return _read(first)
        return Turn(f"It is {phrases[-1 if self.forgets else 0]}.")

    def _code(self, request: RecordedRequest, exercise: Exercise) -> Turn:
        right = SOLUTIONS[exercise.name]
        turns = [_write(exercise.path, right), Turn("Done.")]
        if self.slow:
            turns.insert(0, _write(exercise.path, "raise SystemExit\n"))
        if self.meddles:
            other = next(p for p in exercise.files if p not in exercise.allowed and "test" not in p)
            turns.insert(0, _write(other, "# tidied up\n"))
        if self.lazy:
            turns = [Turn("Done.")]
        return turns[min(len(_sound(request)), len(turns) - 1)]


def _results(request: RecordedRequest) -> list[str]:
    return [as_text(m.get("content")) for m in request.messages if m.get("role") == "tool"]


def _sound(request: RecordedRequest) -> list[str]:
    return [text for text in _results(request) if not text.startswith("The arguments")]


def _read(path: str) -> Turn:
    return Turn(calls=(Call("read_file", {"path": path}),))


def _write(path: str, content: str) -> Turn:
    arguments: JsonObject = {"path": path, "content": content}
    return Turn(calls=(Call("write_file", arguments),))
