"""Output of a command in one sandbox as input of one in another; the host reads none of it."""

from collections.abc import AsyncIterator

from turnout.errors import SandboxError
from turnout.sandbox.base import Command, Exit, Sandbox

__all__ = ["Piped"]

_MOST_COMPLAINT = 4_000


class Piped:
    """A command whose standard output is passed on as it comes, up to a limit."""

    def __init__(self, sandbox: Sandbox, limit: int) -> None:
        self._sandbox = sandbox
        self._limit = limit
        self._exit: Exit | None = None
        self._passed = 0
        self._complaint = bytearray()

    async def output(self, command: Command) -> AsyncIterator[bytes]:
        """Yield what the command prints; over the limit, end it and yield no more."""
        async for item in self._sandbox.exec(command):
            if isinstance(item, Exit):
                self._exit = item
            elif item.stream == "stderr":
                self._complaint += item.data[: _MOST_COMPLAINT - len(self._complaint)]
            elif self._passed <= self._limit:
                self._passed += len(item.data)
                if self._passed > self._limit:
                    await self._sandbox.kill_all()
                else:
                    yield item.data

    def check(self, what: str) -> None:
        """Raise where the command did not come to a good end; `what` is the sentence for that."""
        if self._passed > self._limit:
            raise SandboxError(
                f"{what}: more than {self._limit >> 20} MiB.",
                mend="Let the task leave less behind.",
            )
        if self._exit is None:
            raise SandboxError(f"{what}: the command was not heard of again.")
        if self._exit.reason != "exited" or self._exit.code != 0:
            said = self._complaint.decode(errors="backslashreplace").strip()
            raise SandboxError(f"{what}: {self._exit.reason}, {said[-500:] or self._exit.error}")
