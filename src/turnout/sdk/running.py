"""A command that runs while its caller goes on."""

import asyncio

from turnout.sdk.box import Box
from turnout.sdk.options import Execution
from turnout.sdk.result import Collecting, ExecResult, StreamName

__all__ = ["Running"]


class Running:
    """One background command of a sandbox; made and used on the loop of its box."""

    def __init__(self, box: Box, execution: Execution) -> None:
        self._collecting = Collecting(execution.command)
        work = box.run(execution, collecting=self._collecting)
        self._task = asyncio.get_running_loop().create_task(work)
        self._task.add_done_callback(_look)

    @classmethod
    async def start(cls, box: Box, execution: Execution) -> "Running":
        """Start the command."""
        return cls(box, execution)

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return self._task.done()

    def so_far(self, stream: StreamName) -> str:
        """Return what it has printed."""
        return self._collecting.so_far(stream)

    async def wait(self) -> ExecResult:
        """Wait for its end; what is raised is what `Box.run` raised."""
        await asyncio.wait([self._task])
        return self._collecting.killed() if self._task.cancelled() else self._task.result()

    async def kill(self) -> None:
        """End it, with all that it started and that has not left it."""
        self._task.cancel()
        await asyncio.wait([self._task])


def _look(task: "asyncio.Task[ExecResult]") -> None:
    """Take note of an error, so that nobody complains of one that no caller waits for."""
    if not task.cancelled():
        task.exception()
