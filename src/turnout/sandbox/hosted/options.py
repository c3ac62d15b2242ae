"""How machines are rented: what an operator decides."""

from dataclasses import dataclass

__all__ = ["HostedOptions"]


@dataclass(frozen=True, slots=True)
class HostedOptions:
    """What an operator decides about rented machines."""

    image: str | None = None
    """Template or image as the host names it: Python 3.8 or newer, bash, git and tar."""
    python: str = "/usr/bin/python3"
    """Path in the image."""
    labels: tuple[tuple[str, str], ...] = ()
    """Shown in the host's console beside the run."""
