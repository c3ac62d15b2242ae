"""Marks by which model servers tell who speaks, kept from being understood in data.

Some servers read such marks inside a message as the real thing, so that a file could speak as the
system. A zero-width space breaks them; what comes back from the model is made whole again.
"""

import re

__all__ = ["broken", "whole"]

_BREAK = "\u200b"
_ANGLED = (
    "(?:[|｜][\\w▁]{1,40}[|｜]|/?(?:tool_call|tool_response|start_of_turn|end_of_turn)|</?SYS>)>"
)
_SQUARED = "/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT)\\]"
_MARK = re.compile(f"(?<=<)(?={_ANGLED})|(?<=\\[)(?={_SQUARED})")
_BROKEN = re.compile(f"(?<=<){_BREAK}(?={_ANGLED})|(?<=\\[){_BREAK}(?={_SQUARED})")


def broken(text: str) -> str:
    """Return `text` with every mark broken."""
    return _MARK.sub(_BREAK, text)


def whole(text: str) -> str:
    """Return `text` with every broken mark as it was."""
    return _BROKEN.sub("", text)
