"""Requirements, pins and warnings as they are found in the files of a repository."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement
from packaging.utils import canonicalize_name

from turnout.sandbox.declared.plain import package_name, plain

__all__ = ["Collection", "Declared", "strings", "table", "tables"]

_MOST = 200
_MOST_PINS = 5_000


@dataclass(frozen=True, slots=True)
class Declared:
    """What a repository declares."""

    requirements: tuple[str, ...]
    """Normalised specifiers, sorted, markers kept."""
    warnings: tuple[str, ...]
    """What was not taken, one sentence each."""
    pins: tuple[str, ...] = ()
    """Versions that lock files name, as `name==version`, markers kept."""
    builds: bool = False
    """Whether the repository is a Python project that a build backend can install."""


class Collection:
    """What was found so far."""

    def __init__(self) -> None:
        self.project = ""
        """Normalised name of the repository's own package, where it is known."""
        self.builds = False
        self._found: set[str] = set()
        self._pins: set[str] = set()
        self._warnings: list[str] = []

    @property
    def anything(self) -> bool:
        """Whether a requirement was found."""
        return bool(self._found)

    def take(self, path: str, line: str) -> None:
        """Take a line of a file if it is a plain requirement, else warn."""
        try:
            requirement = plain(line)
        except InvalidRequirement:
            self.warn(f"{path}: `{line[:100]}` is not a plain requirement; left out.")
            return
        if package_name(requirement) != self.project:
            self._found.add(requirement)

    def pin(self, name: object, version: object, markers: Iterable[str] = ()) -> None:
        """Take a version that a lock file names for a package, where any of `markers` holds."""
        choice = " or ".join(f"({marker})" for marker in markers)
        try:
            pin = plain(f"{name}=={version}" + (f" ; {choice}" if choice else ""))
        except InvalidRequirement:
            return
        if package_name(pin) != self.project and len(self._pins) < _MOST_PINS:
            self._pins.add(pin)

    def take_pins(self) -> None:
        """Make requirements of the pins."""
        self._found |= self._pins

    def warn(self, text: str) -> None:
        """Note what was not taken."""
        self._warnings.append(text)

    def name_project(self, name: object) -> None:
        """Note the name of the repository's own package."""
        if isinstance(name, str) and name:
            self.project = canonicalize_name(name)

    def finish(self) -> Declared:
        """Return all of it."""
        found = sorted(self._found)
        if len(found) > _MOST:
            self.warn(f"Only the first {_MOST} of {len(found)} requirements are used.")
        return Declared(
            requirements=tuple(found[:_MOST]),
            warnings=tuple(dict.fromkeys(self._warnings)),
            pins=tuple(sorted(self._pins)),
            builds=self.builds,
        )


def table(parent: Mapping[str, object], *keys: str) -> Mapping[str, object]:
    """Return a table within tables; an empty one where there is none."""
    value: object = parent
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def tables(value: object) -> Iterator[Mapping[str, object]]:
    """Yield the tables of a list."""
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))


def strings(value: object) -> Iterator[str]:
    """Yield the strings of a list."""
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, str))
