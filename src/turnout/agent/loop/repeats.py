"""Whether a model goes in circles: actions and what came of them, compared."""

import re
from collections import Counter
from hashlib import blake2b
from typing import Final

from turnout.agent.tools.surfaces import Surface
from turnout.core.tools import ToolCall, ToolResult

__all__ = ["Repeats"]

_SAME: Final = 3
"""How often an action with the same result is no coincidence."""

_FAILURES: Final = 5
"""How often a tool may fail in the same way, one time after the other, whatever it was asked."""

_VARIES: Final = re.compile(r"[0-9]+|`[^`]*`|'[^']*'|\"[^\"]*\"")


class Repeats:
    """Counts actions whose results do not change while nothing else does.

    Polling lives: another result makes another action. A call that may write and was not made
    before counts as a change; A, B, A, B that undo one another do not.
    """

    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._counts: Counter[bytes] = Counter()
        self._made: set[bytes] = set()
        self._failing: tuple[str, str] = ("", "")
        self._failures = 0
        self.steps: list[int] = []
        """Steps that repeated something once too often, oldest first."""

    def note(self, step: int, call: ToolCall, result: ToolResult) -> None:
        """Take in a call and its result."""
        tool = self._surface.find(call.name)
        asked = _mark(call.name, call.arguments)
        if tool is not None and tool.writes and not result.is_error and asked not in self._made:
            self._counts.clear()
        self._made.add(asked)
        seen = _mark(call.name, call.arguments, result.content)
        self._counts[seen] += 1
        self._note_failure(tool is not None, call, result)
        again = self._counts[seen] >= _SAME or self._failures >= _FAILURES
        if again and (not self.steps or self.steps[-1] != step):
            self.steps.append(step)

    def forget(self) -> None:
        """Count results anew; what was changed stays known."""
        self._counts.clear()
        self._failures = 0

    def _note_failure(self, known: bool, call: ToolCall, result: ToolResult) -> None:
        failing = ("", "no such tool")
        if known:
            failing = (call.name, _VARIES.sub("", result.content.partition("\n")[0]))
        if not result.is_error:
            self._failures = 0
        elif failing == self._failing:
            self._failures += 1
        else:
            self._failures = 1
        self._failing = failing


def _mark(*parts: str) -> bytes:
    """Return a mark that is equal for equal texts, whatever their length."""
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(part.encode(errors="surrogatepass"))
        digest.update(b"\xff")
    return digest.digest()
