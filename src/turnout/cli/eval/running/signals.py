"""What Ctrl-C means while an evaluation goes on."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["Signals"]

_STOPPING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """What Ctrl-C means: no more trials, and the second time no waiting either."""

    def __init__(self) -> None:
        self.stopped = False
        """Whether any has come."""
        self.leaving = False
        """Whether what is under way is left, too."""
        self._stop: Callable[[str], None] | None = None
        self._say: Callable[[str], None] | None = None
        self._main = asyncio.current_task()

    def asks(self, stop: Callable[[str], None], say: Callable[[str], None]) -> None:
        """Tell what is stopped, and where that is said."""
        self._stop, self._say = stop, say

    @contextmanager
    def caught(self) -> Iterator[None]:
        """Catch the signals; one that whoever started us had us ignore stays ignored."""
        loop = asyncio.get_running_loop()
        caught = [each for each in _STOPPING if signal.getsignal(each) is not signal.SIG_IGN]
        for number in caught:
            loop.add_signal_handler(number, self.arrived)
        try:
            yield
        finally:
            for number in caught:
                loop.remove_signal_handler(number)

    def arrived(self) -> None:
        """Begin no more trials; a second time, or before any could begin, just leave."""
        if self.leaving:
            return
        if self.stopped or self._stop is None or self._say is None:
            self.stopped = self.leaving = True
            if self._main is not None:
                self._main.cancel()
            return
        self.stopped = True
        self._stop("Interrupted.")
        self._say("No more trials are begun; press Ctrl-C again to leave those under way.")
