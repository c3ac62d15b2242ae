"""What Ctrl-C means while a run goes on."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from turnout.cli.progress import Progress
from turnout.runs.stop import Stop

__all__ = ["Signals", "stop_on_signals"]

_STOPPING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """What Ctrl-C means at each moment of a run."""

    def __init__(self, progress: Progress, main: "asyncio.Task[Any]") -> None:
        self.stop = Stop()
        self.started = False
        """Whether there is a record yet, and so something to keep."""
        self._progress = progress
        self._main = main
        self._leaving = False

    def arrived(self) -> None:
        """Ask for a stop, first gently; without a record, or a third time, just leave."""
        if self._leaving:
            return
        if not self.started or self.stop.urgent:
            self._leaving = True
            self._main.cancel()
        elif self.stop.asked:
            self.stop.ask()
        else:
            self.stop.ask()
            self._progress.say("Stopping after this step; press Ctrl-C again to stop at once.")


@asynccontextmanager
async def stop_on_signals(progress: Progress) -> AsyncIterator[Signals]:
    """Catch Ctrl-C, and the signals that end services and sessions, until the block ends.

    A signal that whoever started us had us ignore, as `nohup` does, stays ignored.
    """
    main = asyncio.current_task()
    if main is None:
        raise RuntimeError("runs inside a task")
    signals = Signals(progress, main)
    loop = asyncio.get_running_loop()
    caught = [number for number in _STOPPING if signal.getsignal(number) is not signal.SIG_IGN]
    for number in caught:
        loop.add_signal_handler(number, signals.arrived)
    try:
        yield signals
    finally:
        for number in caught:
            loop.remove_signal_handler(number)
