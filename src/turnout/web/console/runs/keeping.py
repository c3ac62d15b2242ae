"""The stories of runs that are looked at, so that none is read from its beginning again."""

import asyncio
from collections import OrderedDict
from typing import Final

from turnout.core.ids import RunId
from turnout.runs.durable.ports import RunDesk
from turnout.web.console.runs.story import Story

__all__ = ["Stories"]

_MOST: Final = 32
_HEAVIEST: Final = 64 * 2**20
"""Characters that all of them hold together."""
_AT_ONCE: Final = 500
"""Entries after which others have their turn."""


class Stories:
    """Those that were looked at last; together they are not too heavy."""

    def __init__(self, *, most: int = _MOST, heaviest: int = _HEAVIEST) -> None:
        self._most = most
        self._heaviest = heaviest
        self._kept: OrderedDict[RunId, Story] = OrderedDict()

    async def of(self, desk: RunDesk, project: str, run_id: RunId) -> Story:
        """Return a run's story as of now; `NotFoundError` where the project has no such run."""
        story = self._kept.setdefault(run_id, Story())
        self._kept.move_to_end(run_id)
        while True:
            entries = await desk.entries(project, run_id, after=story.last_seq, limit=_AT_ONCE)
            for entry in entries:
                story.add(entry)
            if len(entries) < _AT_ONCE:
                break
            await asyncio.sleep(0)
        self._let_go()
        return story

    def _let_go(self) -> None:
        weight = sum(story.weight for story in self._kept.values())
        while len(self._kept) > self._most or (weight > self._heaviest and len(self._kept) > 1):
            _, oldest = self._kept.popitem(last=False)
            weight -= oldest.weight
