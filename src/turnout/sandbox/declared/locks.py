"""Lock files: the exact version of each package, where one was settled on."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from turnout.sandbox.declared.collection import Collection, strings, table, tables
from turnout.sandbox.declared.toml import read_toml

__all__ = ["is_lock", "read_lock"]

_PYLOCK = re.compile(r"pylock\.(?:[^./]+\.)?toml")


def is_lock(path: str) -> bool:
    """Say whether a file of this path is a lock file that `read_lock` can read."""
    return path in _READERS or _PYLOCK.fullmatch(path) is not None


def read_lock(collection: Collection, path: str, text: str) -> None:
    """Take the versions that a lock file names; only those that come from an index."""
    _READERS.get(path, _read_pylock)(collection, path, text)


def _read_uv(collection: Collection, path: str, text: str) -> None:
    for package in tables(read_toml(collection, path, text).get("package")):
        if "registry" in table(package, "source"):
            markers = strings(package.get("resolution-markers"))
            collection.pin(package.get("name"), package.get("version"), markers)


def _read_poetry(collection: Collection, path: str, text: str) -> None:
    for package in tables(read_toml(collection, path, text).get("package")):
        if table(package, "source").get("type") in (None, "legacy"):
            collection.pin(package.get("name"), package.get("version"), _poetry_markers(package))


def _poetry_markers(package: Mapping[str, object]) -> Iterator[str]:
    markers = package.get("markers")
    values = markers.values() if isinstance(markers, dict) else [markers]
    yield from dict.fromkeys(value for value in values if isinstance(value, str))


def _read_pylock(collection: Collection, path: str, text: str) -> None:
    for package in tables(read_toml(collection, path, text).get("packages")):
        if not package.keys() & {"vcs", "directory", "archive"}:
            marker = package.get("marker")
            markers = [marker] if isinstance(marker, str) else []
            collection.pin(package.get("name"), package.get("version"), markers)


def _read_pipfile(collection: Collection, path: str, text: str) -> None:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        collection.warn(f"{path} cannot be read: {str(error)[:200]}")
        return
    for section in ("default", "develop"):
        packages = table(content, section) if isinstance(content, dict) else {}
        for name in packages:
            package = table(packages, name)
            version, marker = package.get("version"), package.get("markers")
            if isinstance(version, str) and version.startswith("=="):
                markers = [marker] if isinstance(marker, str) else []
                collection.pin(name, version.removeprefix("=="), markers)


_READERS: Final[Mapping[str, Callable[[Collection, str, str], None]]] = {
    "uv.lock": _read_uv,
    "poetry.lock": _read_poetry,
    "pylock.toml": _read_pylock,
    "Pipfile.lock": _read_pipfile,
}
