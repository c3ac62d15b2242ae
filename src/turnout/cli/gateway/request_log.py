"""What a process that serves says of itself, written beside the path that serves."""

import logging
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Final, Self, TextIO

from turnout.cli.gateway.lines import Lines, TextLines
from turnout.core.observe.news import RunNews
from turnout.core.receipts import Receipt
from turnout.core.secrecy.redactor import Redactor

__all__ = ["RequestLog"]

_WAITING: Final = 1_000
"""Lines that may wait for a slow reader; what comes beyond is dropped, not waited for."""

_LAST_SECONDS: Final = 1.0


class RequestLog:
    """Writes lines in a thread of its own, so that no request waits for whoever reads them."""

    def __init__(
        self, stream: TextIO, lines: Lines | None = None, redactor: Redactor | None = None
    ) -> None:
        self._stream = stream
        self._redactor = redactor or Redactor()
        self._words = lines or TextLines()
        self._lines: queue.Queue[str | None] = queue.Queue(_WAITING)
        self._thread = threading.Thread(target=self._write, name="request-log", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._put(None)
        self._thread.join(_LAST_SECONDS)

    def note(self, receipt: Receipt) -> None:
        """Have a receipt's line written; returns at once."""
        self._put(self._words.request(receipt))

    def tell(self, news: RunNews) -> None:
        """Have what becomes of a run written; returns at once."""
        self._put(self._words.news(news))

    def say(self, text: str) -> None:
        """Have a sentence for the person who waits written; returns at once."""
        self._put(self._words.sentence(text))

    @contextmanager
    def hearing_loggers(self) -> Iterator[None]:
        """Write what any part of the process logs, too, until the block ends."""
        handler, root = _Handler(self), logging.getLogger()
        root.addHandler(handler)
        try:
            yield
        finally:
            root.removeHandler(handler)

    def put_record(self, record: logging.LogRecord) -> None:
        """Have what was logged written; returns at once."""
        self._put(self._words.record(record))

    def _put(self, line: str | None) -> None:
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            return

    def _write(self) -> None:
        try:
            while (line := self._lines.get()) is not None:
                self._stream.write(f"{self._redactor.text(line)}\n")
                self._stream.flush()
        except OSError:
            # Nobody reads them any more.
            return


class _Handler(logging.Handler):
    def __init__(self, log: RequestLog) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._log.put_record(record)
        except (TypeError, ValueError):
            # Its arguments do not fit its message.
            self.handleError(record)
