"""What both kinds of sandbox tell without a call."""

from collections.abc import Mapping

from turnout.sdk.keeper import Hold

__all__ = ["Face"]


class Face:
    """A sandbox of this program; made by `create`."""

    def __init__(self, hold: Hold) -> None:
        self._hold = hold

    @property
    def id(self) -> str:
        """The sandbox's name."""
        return self._hold.box.id

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels that it was created with."""
        return self._hold.box.labels

    @property
    def warnings(self) -> tuple[str, ...]:
        """What could not be had when it was made, one sentence each."""
        return self._hold.box.warnings

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"
