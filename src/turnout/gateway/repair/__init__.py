"""Tool calls as clients expect them, whatever the server behind does with them."""

from turnout.gateway.repair.reply import (
    CallCount,
    Repaired,
    count_calls,
    needs_whole_reply,
    repair_reply,
)
from turnout.gateway.repair.request import call_format, emulates_tool_choice, prepare_body

__all__ = [
    "CallCount",
    "Repaired",
    "call_format",
    "count_calls",
    "emulates_tool_choice",
    "needs_whole_reply",
    "prepare_body",
    "repair_reply",
]
