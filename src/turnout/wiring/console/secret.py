"""What the cookies of the console are signed with."""

import os
import secrets
from pathlib import Path
from typing import Final

from turnout.errors import UnfitError

__all__ = ["signing_secret"]

_FILE: Final = "console.secret"
_BYTES: Final = 32


def signing_secret(home: Path) -> bytes:
    """Return the secret of a state folder, made at first use; whoever has it can sign in.

    Every process that serves from the folder has the same. `UnfitError` where it cannot be kept.
    """
    place = home / _FILE
    try:
        found = _read(place)
        return found or _made(place)
    except OSError as error:
        raise UnfitError(
            f"The secret of the console cannot be kept in {place}: {error.strerror}.",
            mend="Let this user write the state folder.",
        ) from error


def _read(place: Path) -> bytes:
    try:
        found = place.read_bytes()
    except FileNotFoundError:
        return b""
    return found if len(found) == _BYTES else b""


def _made(place: Path) -> bytes:
    """Make it whole or not at all; whoever is first decides."""
    own = place.with_name(f"{place.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_BYTES))
        if place.exists() and not _read(place):
            own.replace(place)
        else:
            _link(own, place)
    finally:
        own.unlink(missing_ok=True)
    return _read(place)


def _link(own: Path, place: Path) -> None:
    try:
        os.link(own, place)
    except FileExistsError:
        return
