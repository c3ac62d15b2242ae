"""A bound on every test: whatever it waits for, it ends, and says where it stood."""

import asyncio
import faulthandler
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import NoReturn

import pytest

__all__ = ["bounded", "unbounded"]

AGAIN = 2.0
"""Seconds until the signal comes again, should the first have met code that catches everything."""
PARTS = (("cr_frame", "cr_await"), ("gi_frame", "gi_yieldfrom"), ("ag_frame", "ag_await"))


@contextmanager
def bounded(name: str, seconds: float, descriptor: int) -> Iterator[None]:
    """Fail what runs in this, however it waits, when the time is over.

    Where everything stands then is in the failure, and written to a descriptor at once.
    """

    def end(_: int, frame: FrameType | None) -> NoReturn:
        text = f"{name} is not done after {seconds:g} s, and stands in:"
        text = "\n".join([text, *standing(frame), *waiting()])
        os.write(descriptor, f"\n{text}\n".encode())
        pytest.fail(text, pytrace=False)

    handler = signal.signal(signal.SIGALRM, end)
    timer = (0.0, 0.0)
    try:
        timer = signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)


@contextmanager
def unbounded() -> Iterator[None]:
    """Stop the clock of a test, for what serves many and has a longer bound of its own."""
    faulthandler.cancel_dump_traceback_later()
    timer = signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)


def standing(frame: FrameType | None) -> Iterator[str]:
    """Yield where the main thread is, innermost first, as far as it is not pytest's own."""
    while frame is not None:
        if "site-packages" not in frame.f_code.co_filename:
            yield place(frame.f_code, frame.f_lineno)
        frame = frame.f_back


def waiting() -> Iterator[str]:
    """Yield what every task of the running loop waits for, innermost last."""
    try:
        tasks = asyncio.all_tasks()
    except RuntimeError:
        return
    for task in tasks:
        yield f"task {task.get_name()}:"
        yield from chain(task.get_coro())


def chain(waiter: object) -> Iterator[str]:
    """Yield the places of a coroutine and of those that it awaits."""
    while waiter is not None:
        for frame_of, next_of in PARTS:
            if hasattr(waiter, next_of):
                frame = getattr(waiter, frame_of)
                if frame is not None:
                    yield place(frame.f_code, frame.f_lineno)
                waiter = getattr(waiter, next_of)
                break
        else:
            return


def place(code: CodeType, line: int) -> str:
    """Return a line of code as people look it up."""
    return f"    {code.co_filename}:{line} in {code.co_qualname}"
