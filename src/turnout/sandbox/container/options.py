"""How containers are made: what an operator decides."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["ContainerOptions", "EngineName"]

EngineName = Literal["podman", "docker"]


@dataclass(frozen=True, slots=True)
class ContainerOptions:
    """What an operator decides about containers."""

    engine: EngineName | Literal["auto"] = "auto"
    """`auto`: Podman where it can be used, else Docker."""
    image: str = "turnout-sandbox"
    """Image of the sandboxes: Python 3.8 or newer, bash, git, tar and coreutils. Never pulled."""
    runtime: str = ""
    """OCI runtime, such as `runsc` of gVisor or `kata`; empty: the engine's default."""
    warm: int = 0
    """How many containers are kept ready for each base and set of limits."""
    warm_bases: int = 4
    """For how many of these, those that were used last."""
    ulimits: tuple[str, ...] = ()
    """`NAME=SOFT:HARD`, where the engine would set one that this machine does not allow."""
    piped: bool = False
    """Talk through the engine's client even where containers could be given the channel itself."""
    program: str = ""
    """Path of the engine's program; empty: it is found by its name."""
    start_seconds: float = 60.0
    """How long a container may take to come up."""
