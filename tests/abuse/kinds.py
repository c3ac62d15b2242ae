"""The kinds of sandbox that the table is tried on."""

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.images.debian import image_name

from turnout.sandbox.base import SandboxDriver
from turnout.sandbox.bubblewrap import BubblewrapDriver
from turnout.sandbox.container.driver import ContainerDriver
from turnout.sandbox.container.options import ContainerOptions
from turnout.sandbox.unconfined.driver import UnconfinedDriver

__all__ = ["KINDS"]


def _container(state: Path) -> SandboxDriver:
    return ContainerDriver(
        state, options=ContainerOptions(engine="podman", runtime="runc", image=image_name())
    )


KINDS: Mapping[str, Callable[[Path], SandboxDriver]] = {
    "bubblewrap": BubblewrapDriver,
    "container": _container,
    "none": UnconfinedDriver,
}
"""How the driver of each is made on a state folder."""
