"""How far a run may go and how much its model reads, surface by surface, as data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from turnout.agent.base import AgentConfig
from turnout.core.tasks import SurfaceName

__all__ = ["BOUNDS", "Bounds", "bounds_of"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What counts where the user has set nothing else."""

    steps: int
    """Act steps before the run ends with `step_limit`."""
    command_timeout: float
    """Seconds a tool's command may take."""
    test_timeout: float
    """Seconds a run of the tests that the model asks for may take."""
    output_cap: int
    """Characters of one tool result that a model reads."""
    read_cap: int
    """The same for a page of a file: edits need files as they are."""


_SHELL: Final = Bounds(
    steps=40, command_timeout=300.0, test_timeout=300.0, output_cap=6_000, read_cap=20_000
)
_GUIDE: Final = Bounds(
    steps=20, command_timeout=120.0, test_timeout=120.0, output_cap=8_000, read_cap=8_000
)

_PART: Final = 4
_CHARS_PER_TOKEN: Final = 3
_LEAST: Final = 1_000

BOUNDS: Final[Mapping[SurfaceName, Bounds]] = {
    "guide": _GUIDE,
    "shell": _SHELL,
    "files": _SHELL,
    "review": _GUIDE,
}


def bounds_of(
    surface: SurfaceName,
    config: AgentConfig,
    *,
    window: int | None = None,
    tests_took: float = 0.0,
) -> Bounds:
    """Return the bounds of a run; what the user has set counts on every surface.

    No result takes more than a part of the model's `window`, of which None is not known. Tests
    whose first run, of `tests_took` seconds, came near the surface's time have as long as ours.
    """
    own = BOUNDS[surface]
    slow = tests_took > own.test_timeout / 2
    most = max(_LEAST, (window or config.window) // _PART * _CHARS_PER_TOKEN)
    return Bounds(
        steps=config.max_steps or own.steps,
        command_timeout=config.command_timeout or own.command_timeout,
        test_timeout=config.own_test_timeout if slow else config.test_timeout or own.test_timeout,
        output_cap=config.output_cap or min(most, own.output_cap),
        read_cap=config.output_cap or min(most, own.read_cap),
    )
