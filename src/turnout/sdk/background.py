"""One event loop of this process, in a thread of its own, for all sandboxes of all callers.

The sandboxes of a program outlive any one call and any one event loop of the program: output must
be read, and time limits kept, while the program does other things.
"""

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Generic, ParamSpec, TypeVar

from turnout.errors import SandboxError, TurnoutError, UsageError

__all__ = ["Background"]

T = TypeVar("T")
P = ParamSpec("P")


class _Executor(ThreadPoolExecutor):
    """Works to the very end of the program, when threads take no work any more."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        try:
            return super().submit(fn, *args, **kwargs)
        except RuntimeError:
            done: Future[T] = Future()
            done.set_result(fn(*args, **kwargs))
            return done


class _Job(Generic[T]):
    """Work that can be given up by who was interrupted before it got hold of the work's future."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._task: asyncio.Task[Any] | None = None
        self._given_up = False

    async def run(self) -> T:
        if self._given_up:
            self._work.close()
            raise asyncio.CancelledError
        self._task = asyncio.current_task()
        return await self._work

    def give_up(self) -> None:
        """Cancel the work, on its loop; it may have ended."""
        self._given_up = True
        if self._task is not None:
            self._task.cancel()


class Background:
    """The loop, started at first use; it ends with the program, after `at_end` was done on it."""

    def __init__(
        self,
        at_end: Callable[[], Coroutine[Any, Any, None]],
        *,
        ending_seconds: float = 10.0,
    ) -> None:
        self._at_end = at_end
        self._ending_seconds = ending_seconds
        self._pid = os.getpid()
        # Finalisers run in any thread at any moment, within the lock as well.
        self._starting = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._ended = False

    @property
    def is_here(self) -> bool:
        """False in a process that was forked from the one which started the loop."""
        return self._pid == os.getpid()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start work on the loop; cancelling what is returned cancels the work."""
        return asyncio.run_coroutine_threadsafe(work, self._loop_for(work))

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Do work on the loop and wait for it."""
        with self.working(work) as future:
            return future.result()

    @contextmanager
    def working(self, work: Coroutine[Any, Any, T]) -> Iterator[Future[T]]:
        """Do work on the loop while the block waits for it; leaving the block cancels the work."""
        if threading.current_thread() is self._thread:
            work.close()
            raise SandboxError("A sandbox cannot be waited for in the thread that serves it.")
        loop = self._loop_for(work)
        job = _Job(work)
        future: Future[T] | None = None
        try:
            future = asyncio.run_coroutine_threadsafe(job.run(), loop)
            yield future
        finally:
            if future is None or not future.done():
                loop.call_soon_threadsafe(job.give_up)

    async def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Do work on the loop and wait for it in another loop; cancelled together."""
        return await asyncio.wrap_future(self.submit(work))

    def _loop_for(self, work: Coroutine[Any, Any, object]) -> asyncio.AbstractEventLoop:
        """Return the loop, which runs, or close the work and say why there is none."""
        try:
            if not self.is_here:
                raise UsageError(
                    "The sandbox belongs to the process from which this one was forked.",
                    mend="Create a sandbox in this process.",
                )
            with self._starting:
                if self._ended:
                    raise SandboxError("The program is ending.")
                if self._loop is None:
                    self._loop = self._start()
                return self._loop
        except TurnoutError:
            work.close()
            raise

    def _start(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        loop.set_default_executor(_Executor(thread_name_prefix="turnout"))
        self._thread = threading.Thread(target=loop.run_forever, name="turnout", daemon=True)
        self._thread.start()
        atexit.register(self._end)
        return loop

    def _end(self) -> None:
        """Close what is open and stop; what does not close in time ends with the process."""
        if not self.is_here or self._loop is None or self._thread is None:
            return
        closing = asyncio.run_coroutine_threadsafe(self._at_end(), self._loop)
        with self._starting:
            self._ended = True
        try:
            closing.result(self._ending_seconds)
        except TimeoutError:
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(self._ending_seconds)
        if not self._thread.is_alive():
            self._loop.close()
