"""One line for each request of the gateway, written beside the path that serves it."""

import queue
import threading
from datetime import datetime
from types import TracebackType
from typing import Final, Self, TextIO

from turnout.cli.terminal import safe
from turnout.core.money import format_usd
from turnout.core.receipts import Receipt

__all__ = ["RequestLog", "line_of"]

_WAITING: Final = 1_000
"""Lines that may wait for a slow reader; what comes beyond is dropped, not waited for."""

_LAST_SECONDS: Final = 1.0


def line_of(receipt: Receipt) -> str:
    """Return a receipt on one line; it holds no prompt and no key."""
    cost = "unpriced" if receipt.cost_micros is None else format_usd(receipt.cost_micros)
    parts = [
        f"{receipt.at.astimezone():%H:%M:%S}",
        receipt.request_id,
        receipt.error_code or receipt.model or receipt.asked_model,
        str(receipt.http_status),
        f"{receipt.latency_ms} ms",
        cost,
    ]
    if receipt.routing is not None and receipt.routing.fallback:
        parts.append("fallback")
    if receipt.replay_of is not None:
        parts.append("replayed")
    return safe("  ".join(parts))


class RequestLog:
    """Writes lines in a thread of its own, so that no request waits for whoever reads them."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
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
        self._put(line_of(receipt))

    def say(self, text: str) -> None:
        """Have a sentence written with the time of day; returns at once."""
        self._put(safe(f"{datetime.now():%H:%M:%S}  {text}"))

    def _put(self, line: str | None) -> None:
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            return

    def _write(self) -> None:
        try:
            while (line := self._lines.get()) is not None:
                self._stream.write(f"{line}\n")
                self._stream.flush()
        except OSError:
            # Nobody reads them any more.
            return
