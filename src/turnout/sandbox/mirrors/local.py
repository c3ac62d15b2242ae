"""Package indexes and folders of packages on this machine, shown inside where they are."""

import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from turnout.sandbox.base import REPO, VENV, WORKSPACE, Mount
from turnout.sandbox.inside.indexes import LINK
from turnout.sandbox.mirrors.pip_settings import PackagePlace
from turnout.sandbox.rooms.room import SCRATCH

__all__ = ["can_be_shown", "local_mounts"]

_HIDDEN: Final = (REPO, WORKSPACE, VENV, SCRATCH, "/dev", "/etc", "/proc", "/run", "/sys")
_SHOWN: Final = ("/usr", "/bin", "/lib", "/lib64")
_MOST_PAGES: Final = 20
_MOST_PAGE_BYTES: Final = 64 << 10


def can_be_shown(folder: Path) -> bool:
    """Whether a folder's path is free inside."""
    if not folder.is_absolute() or folder == Path("/"):
        return False
    return not any(folder.is_relative_to(hidden) for hidden in _HIDDEN)


def local_mounts(
    indexes: Iterable[PackagePlace], links: Iterable[PackagePlace]
) -> tuple[Mount, ...]:
    """Show what is local of these places, and where the pages of an index say that files are."""
    folders: dict[Path, None] = {}
    for place in indexes:
        if place.folder:
            folders |= dict.fromkeys([Path(place.folder), *_file_folders(Path(place.folder))])
    folders |= dict.fromkeys(Path(place.folder) for place in links if place.folder)
    wanted = [folder for folder in folders if folder.is_dir() and not _is_seen(folder, folders)]
    return tuple(Mount(str(folder), str(folder)) for folder in wanted if can_be_shown(folder))


def _is_seen(folder: Path, others: Iterable[Path]) -> bool:
    """Whether a folder is shown by something above it."""
    above = [Path(path) for path in _SHOWN] + [other for other in others if other != folder]
    return any(folder.is_relative_to(path) for path in above)


def _file_folders(index: Path) -> Iterator[Path]:
    """Yield where, beside or in an index, the files are that its first pages link to."""
    beside = index.parent
    try:
        pages = list(itertools.islice(sorted(index.glob("*/index.html")), _MOST_PAGES))
    except OSError:
        return
    for page in pages:
        try:
            with page.open(encoding="utf-8", errors="replace") as file:
                text = file.read(_MOST_PAGE_BYTES)
        except OSError:
            continue
        for link in LINK.findall(text):
            if "://" not in link:
                folder = Path(os.path.normpath(page.parent / unquote(link))).parent
                # Not all that is linked to is of the index: names come from elsewhere.
                if folder.is_relative_to(beside) and _is_open(folder.relative_to(beside)):
                    yield folder


def _is_open(folder: Path) -> bool:
    """Whether a folder is not all that lies beside an index, nor hidden there."""
    return bool(folder.parts) and not any(part.startswith(".") for part in folder.parts)
