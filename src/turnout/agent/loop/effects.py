"""What the calls of a run have changed, in short: no summary may forget it."""

from collections import deque
from typing import Final

from turnout.agent.tools.surfaces import Surface
from turnout.core.tools import ToolCall, ToolResult

__all__ = ["Effects"]

_MOST: Final = 120
_MOST_CHARS: Final = 6_000
_CALL: Final = 200
_RESULT: Final = 100


class Effects:
    """One line for each call that has changed something or may have, the newest ones kept."""

    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._lines: deque[str] = deque(maxlen=_MOST)
        self._count = 0

    def note(self, call: ToolCall, result: ToolResult) -> None:
        """Take in a call that was carried out."""
        tool = self._surface.find(call.name)
        if tool is None or not tool.writes or (result.is_error and not result.unsure):
            return
        self._count += 1
        said = result.content.partition("\n")[0]
        mark = "[perhaps] " if result.unsure else ""
        arguments = _short(call.arguments, _CALL)
        self._lines.append(f"{mark}{call.name} {arguments}: {_short(said, _RESULT)}")

    def text(self) -> str:
        """Return them oldest first; empty where there are none."""
        kept: list[str] = []
        room = _MOST_CHARS
        for line in reversed(self._lines):
            room -= len(line) + 1
            if room < 0:
                break
            kept.append(line)
        earlier = self._count - len(kept)
        left_out = [f"[{earlier} earlier ones left out]"] if earlier else []
        return "\n".join([*left_out, *reversed(kept)])


def _short(text: str, limit: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[: limit - 4]} ..."
