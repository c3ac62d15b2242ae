"""Looking into an image by one container of it, which is gone afterwards."""

from importlib.resources import files
from pathlib import Path
from secrets import token_hex

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from turnout.errors import SandboxUnavailableError
from turnout.sandbox.base import Limits, Mount
from turnout.sandbox.container.engines.arguments import Container, run_words
from turnout.sandbox.container.engines.complaints import why_not
from turnout.sandbox.container.engines.engine import Engine
from turnout.sandbox.container.engines.profile import profile
from turnout.sandbox.container.engines.user import choose_user
from turnout.sandbox.container.options import ContainerOptions
from turnout.sandbox.inside.handover import resident_source
from turnout.sandbox.walls.arguments import FILES_INSIDE
from turnout.sandbox.workspace.folders import readable, short_hash, traversable

__all__ = ["PROFILE", "Found", "check", "find_image", "hand_in", "look"]

PROFILE = "profile.json"
"""Name of the system call filter in the folder of `hand_in`."""

_LABEL = "turnout.survey=1"
_LIMITS = Limits(memory_bytes=512 << 20, disk_bytes=64 << 20)
_FIND_PYTHON = """
for name in python3 /usr/bin/python3 /usr/local/bin/python3; do
    if command -v "$name" >/dev/null; then exec "$name" -ISE "$@"; fi
done
echo "there is no python3 in it" >&2
exit 1
"""


class _ImageConfig(BaseModel):
    volumes: dict[str, object] | None = Field(None, alias="Volumes")


class _Image(BaseModel):
    id: str = Field(alias="Id")
    config: _ImageConfig = Field(alias="Config")


_Images = TypeAdapter(tuple[_Image])


class Found(BaseModel):
    """What the program in the container found."""

    python: str
    version: str
    machine: str
    glibc: bool
    missing: tuple[str, ...]
    """Programs that are not there."""
    uid: int
    filtered: bool
    """The system call filter holds."""
    no_new_privileges: bool
    capabilities: bool
    """It has any."""
    memory_limit: int | None
    """Of its control group; None where none is seen."""
    agent: str
    """The resident agent, compiled, in base64."""


async def find_image(engine: Engine, name: str) -> str:
    """Return the id of the image; it is never pulled."""
    done = await engine.call("image", "inspect", name)
    if not done.ok:
        raise SandboxUnavailableError(
            f"{engine.name.capitalize()} has no image `{name}`.",
            mend=f"Build it: `{engine.name} build -t {name} deploy/sandbox-image`, or pull one "
            "with Python 3.8, bash and git and name it with `image` under `[sandbox.container]`.",
        )
    try:
        (image,) = _Images.validate_json(done.stdout)
    except ValidationError:
        raise SandboxUnavailableError(f"What is said of image `{name}` cannot be read.") from None
    if image.config.volumes and not engine.is_podman:
        raise SandboxUnavailableError(
            f"The image `{name}` declares volumes, which runs could fill without end.",
            mend="Use an image without VOLUME lines.",
        )
    return image.id


def hand_in(state_dir: Path, machine: str) -> Path:
    """Lay out what the first container is given, and return its folder."""
    program = files("turnout.sandbox.container.engines.inside").joinpath("survey.py").read_bytes()
    contents = {PROFILE: profile(machine), "resident.py": resident_source(), "survey.py": program}
    key = short_hash("".join(data.decode() for data in contents.values()))
    folder = readable(traversable(state_dir / "programs") / key)
    for name, data in contents.items():
        made = folder / f".{name}-{token_hex(4)}"
        made.write_bytes(data)
        made.chmod(0o444)
        made.rename(folder / name)
    return folder


async def look(engine: Engine, options: ContainerOptions, image: str, folder: Path) -> Found:
    """Run the first container."""
    container = Container(
        name=f"turnout-survey-{token_hex(8)}",
        label=_LABEL,
        image=image,
        argv=(
            *("/bin/sh", "-c", _FIND_PYTHON, "sh"),
            *(f"{FILES_INSIDE}/survey.py", f"{FILES_INSIDE}/resident.py"),
        ),
        limits=_LIMITS,
        user=choose_user(engine),
        profile=str(folder / PROFILE),
        mounts=(Mount(str(folder), FILES_INSIDE),),
        ulimits=options.ulimits,
    )
    _, *words = engine.command(options.runtime, run_words(engine, container, "survey"))
    done = await engine.call(*words, timeout=options.start_seconds)
    if not done.ok:
        if done.code is None:
            await engine.remove(container.name, volume=False)
        raise why_not(engine, done.stderr or "it did not come up in time")
    try:
        return Found.model_validate_json(done.stdout)
    except ValidationError:
        raise SandboxUnavailableError(
            f"What is in the image `{options.image}` could not be found out.",
            mend="Use one whose `/bin/sh` and `python3` print nothing by themselves.",
        ) from None


def check(found: Found, engine: Engine, image: str, machine: str) -> None:
    """Raise where something that no sandbox can do without does not hold."""
    if found.missing:
        raise SandboxUnavailableError(
            f"The image `{image}` has no {', '.join(found.missing)}.", mend="Install it there."
        )
    if not found.glibc:
        raise SandboxUnavailableError(
            f"The image `{image}` has another C library than glibc.",
            mend="Use one of Debian, Ubuntu, Fedora or the like.",
        )
    if found.machine != machine:
        raise SandboxUnavailableError(
            f"The image `{image}` is one for {found.machine}.", mend=f"Use one for {machine}."
        )
    walled = found.uid != 0 and not found.capabilities
    if engine.shares_kernel:
        walled = walled and found.filtered and found.no_new_privileges
    if not walled:
        raise SandboxUnavailableError(
            "The container engine did not apply the walls that it was asked for.",
            mend="Look for other defaults in its configuration, such as those of containers.conf.",
        )
