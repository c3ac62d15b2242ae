"""Where this process takes runs in and others work on them."""

from turnout.core.ids import RunId

__all__ = ["Elsewhere"]


class Elsewhere:
    """A `RunEngine` without a worker: those of other processes look for runs by themselves."""

    healthy = True
    """Nothing of it can fail."""

    async def enqueue(self, run_id: RunId) -> None:
        """Leave it to them."""

    async def cancel(self, run_id: RunId) -> None:
        """Leave it to the next sign of life of whoever works on it: that reads the wish."""
