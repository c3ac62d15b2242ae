"""A plan as a numbered list, and how far it is, both as the model writes them."""

import re
from typing import Final

from turnout.core.events import PlanMade, PlanState, PlanUpdated

__all__ = ["finished", "parse_plan", "progressed"]

_ITEM: Final = re.compile(r"\s*(?:\*\*)?([0-9]{1,2})[.):](?:\*\*)?\s+(\S.*)")
_SUCCESS: Final = re.compile(
    r"\s*(?:[-*]\s+)?(?:\*\*)?(?:done when|success)\b[^:]*:(.*)", re.IGNORECASE
)
_AT: Final = re.compile(r"\[([0-9]{1,2})\]")
_MOST_ITEMS: Final = 20
_LONGEST_ITEM: Final = 300


def parse_plan(text: str) -> PlanMade:
    """Read a plan's items and its condition of success; both may be missing."""
    items: list[str] = []
    success = ""
    for line in text.split("\n"):
        if told := _SUCCESS.match(line):
            success = told[1].strip(" *")[:_LONGEST_ITEM]
        elif (found := _ITEM.match(line)) and int(found[1]) == len(items) + 1:
            items.append(found[2].strip()[:_LONGEST_ITEM])
    return PlanMade(text, tuple(items[:_MOST_ITEMS]), success)


def progressed(plan: PlanMade, before: PlanUpdated | None, said: str) -> PlanUpdated | None:
    """Return how far the plan is where a reply names the item it works on; None: as before."""
    named = [int(number) for number in _AT.findall(said)]
    within = [number for number in named if 1 <= number <= len(plan.steps)]
    if not within:
        return None
    at = within[-1]
    states: tuple[PlanState, ...] = tuple(
        "done" if number < at else "under_way" if number == at else "open"
        for number in range(1, len(plan.steps) + 1)
    )
    return None if before is not None and before.states == states else PlanUpdated(states)


def finished(before: PlanUpdated | None) -> PlanUpdated | None:
    """Return the end of the item under way where the work is done; None where none was named."""
    if before is None or "under_way" not in before.states:
        return None
    return PlanUpdated(tuple("done" if s == "under_way" else s for s in before.states))
