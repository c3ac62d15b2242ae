"""Ids of tool calls as the messages shape wants them: of few characters, and each used once."""

import re

from turnout.core.ids import ToolCallId

__all__ = ["Identifiers"]

_REFUSED = re.compile(r"[^a-zA-Z0-9_-]")


class Identifiers:
    """Gives the calls of one conversation, in their order, ids that an upstream takes.

    Models of other shapes number their calls anew in every answer, or put dots and colons into
    an id. The same conversation always gives the same ids.
    """

    def __init__(self) -> None:
        self._given: dict[ToolCallId, str] = {}
        """The last id that was given to each."""
        self._used: set[str] = set()

    def of_call(self, call_id: ToolCallId) -> str:
        """Return the id of the next call."""
        plain = _REFUSED.sub("_", call_id) or "call"
        given, again = plain, 1
        while given in self._used:
            again += 1
            given = f"{plain}_{again}"
        self._used.add(given)
        self._given[call_id] = given
        return given

    def of_result(self, call_id: ToolCallId) -> str:
        """Return the id of the call that a result belongs to: the last one of that name."""
        return self._given.get(call_id) or _REFUSED.sub("_", call_id) or "call"
