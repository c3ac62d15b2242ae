"""An answer as it comes: what a page is told of it while somebody waits."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from time import monotonic
from typing import Final

from starlette.responses import Response

from turnout.core.ids import RequestId
from turnout.core.receipts import Receipt
from turnout.errors import TurnoutError
from turnout.gateway.dialog.conversation import Call
from turnout.gateway.dialog.events import (
    CallDelta,
    CallOpened,
    Event,
    Piece,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
)
from turnout.gateway.exchange import StreamDelta, StreamEnd, UpstreamError

__all__ = ["AnswerView", "Coming", "ComingView", "Patience", "event_of"]

_MOST: Final = 60_000
"""Characters that are shown while they come; all of them are shown in the end, or counted."""
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a page waits; in seconds."""

    silent: float = 180.0
    """Without a word."""
    longest: float = 900.0
    """Altogether."""
    tick: float = 0.5
    """Between two pieces of news."""


@dataclass(frozen=True, slots=True)
class AnswerView:
    """What a model answered."""

    text: str
    thoughts: str
    calls: Sequence[Call]
    finish: str
    receipt: Receipt | None
    whole: bool = True
    """False where it is what had come until something went wrong."""


@dataclass(frozen=True, slots=True)
class ComingView:
    """How far an answer is."""

    request_id: RequestId
    model: str
    """Who answers; empty before the first word."""
    state: str
    """What it does, in a word or two."""
    seconds: float
    news: str
    """Text that the page was not told before."""
    characters: int
    """Of all that has come."""
    patience: Patience


class Coming:
    """Hears an answer, and knows what of it was told."""

    def __init__(self, request_id: RequestId, patience: Patience) -> None:
        self._request_id = request_id
        self._patience = patience
        self._began = self._moved = monotonic()
        self._model = self._finish = self._late = ""
        self._text: list[str] = []
        self._thoughts: list[str] = []
        self._calls: dict[int, Call] = {}
        self._news: list[str] = []
        self._characters = self._told = 0
        self._state = "waits for the first word"

    async def hear(self, parts: AsyncGenerator[StreamDelta | StreamEnd, None]) -> None:
        """Take in all of it; the errors of the engine."""
        async with aclosing(parts):
            async for part in parts:
                self._moved = monotonic()
                if isinstance(part, StreamEnd):
                    self._finish = part.finish
                    pieces: Sequence[Piece] = part.ending.pieces
                else:
                    self._model, pieces = str(part.model), (part.piece,)
                for piece in pieces:
                    for event in piece.events:
                        self._take(event)

    async def moves(self, hearing: "asyncio.Task[None]") -> bool:
        """Wait a moment; return whether it goes on, and stop it where it takes too long."""
        await asyncio.wait([hearing], timeout=self._patience.tick)
        if hearing.done():
            return False
        now, patience = monotonic(), self._patience
        if now - self._moved > patience.silent:
            self._late = f"The model said nothing for {patience.silent:g} s, and was stopped."
        elif now - self._began > patience.longest:
            self._late = f"The answer was not over after {patience.longest:g} s, and was stopped."
        return not self._late

    def seen(self) -> ComingView:
        """Return how far it is; its news are told with that."""
        news, self._news = "".join(self._news)[: max(0, _MOST - self._told)], []
        self._told += len(news)
        return ComingView(
            self._request_id,
            self._model,
            self._state,
            monotonic() - self._began,
            news,
            self._characters,
            self._patience,
        )

    def ended_by(self, hearing: "asyncio.Task[None]") -> BaseException | None:
        """Return what has ended it before its end; None where it is whole."""
        if self._late:
            return TimeoutError(self._late)
        error = asyncio.CancelledError() if hearing.cancelled() else hearing.exception()
        if error is not None and not isinstance(error, TurnoutError | UpstreamError):
            _LOG.error("%s has failed: %s", self._request_id, error, exc_info=error)
        return error

    def answer(self, receipt: Receipt | None, *, whole: bool) -> AnswerView | None:
        """Return what has come; None for nothing of an answer that is not whole."""
        if not whole and not self._characters:
            return None
        text, thoughts = "".join(self._text), "".join(self._thoughts)
        calls = tuple(self._calls[index] for index in sorted(self._calls))
        return AnswerView(text, thoughts, calls, self._finish or "cut off", receipt, whole=whole)

    def _take(self, event: Event) -> None:
        match event:
            case TextDelta(text=text) | RefusalDelta(text=text):
                self._text.append(text)
                self._news.append(text)
                self._state, more = "answers", text
            case ReasoningDelta(text=text):
                self._thoughts.append(text)
                self._state, more = "thinks", text
            case CallOpened(index=index, id=id_, name=name, type=kind):
                self._calls[index] = Call(id_, name, "", kind)
                self._state, more = "calls a tool", name
            case CallDelta(index=index, arguments=more) if index in self._calls:
                held = self._calls[index]
                self._calls[index] = Call(held.id, held.name, held.arguments + more, held.type)
            case _:
                more = ""
        self._characters += len(more)


def event_of(page: Response) -> bytes:
    """Return a part of a page as an event of a stream, every line of it kept."""
    lines = bytes(page.body).split(b"\n")
    return b"".join(b"data: " + line.removesuffix(b"\r") + b"\n" for line in lines) + b"\n"
