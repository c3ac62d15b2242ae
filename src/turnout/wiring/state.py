"""The state folder, made at first use."""

from pathlib import Path

from turnout.errors import UnfitError
from turnout.settings import Settings

__all__ = ["state_folder_of"]


def state_folder_of(settings: Settings) -> Path:
    """Make the state folder; sandboxes of root run under other ids and pass through it."""
    home = settings.home
    try:
        if not home.is_dir():
            home.mkdir(parents=True)
            home.chmod(0o711)
    except OSError as error:
        raise UnfitError(
            f"The state folder {home} cannot be made: {error.strerror}.",
            mend="Set TURNOUT_HOME to a folder that you can write.",
        ) from error
    return home
