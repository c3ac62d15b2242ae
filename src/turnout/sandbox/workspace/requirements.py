"""Which packages the tests of a repository need, read from what it declares.

A repository is not trusted: only plain names with version specifiers are taken from it, never a
URL, a path, an index or any other option.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from turnout.errors import ConfigError

__all__ = ["Declared", "applicable", "declared", "explicit", "package_name"]

_GROUPS = ("test", "tests", "testing", "dev")
_MOST = 200
_LONGEST = 300
_COMMENT = re.compile(r"(^|\s+)#.*$")
_TRAILING_OPTIONS = re.compile(r"\s--?[a-z][a-z-]*[\s=].*$")
_INCLUDE = re.compile(r"(?:-r|--requirement)[\s=]*(\S+)$")
_ITSELF = re.compile(r"(?:(?:-e|--editable)[\s=]*)?\.(?:\[[^\]]*\])?/?$")


@dataclass(frozen=True, slots=True)
class Declared:
    """What a repository declares."""

    requirements: tuple[str, ...]
    """Normalised specifiers, sorted, markers kept."""
    warnings: tuple[str, ...]
    """What was not taken, one sentence each."""


def declared(texts: Mapping[str, str]) -> Declared:
    """Read the requirements out of a repository's files, given by their paths."""
    collection = _Collection()
    for path, text in texts.items():
        if path == "pyproject.toml":
            collection.read_pyproject(text)
    for path, text in sorted(texts.items()):
        if path != "pyproject.toml":
            collection.read_requirements_file(path, text, frozenset(texts))
    return collection.finish()


def explicit(requirements: Sequence[str]) -> tuple[str, ...]:
    """Check requirements that a user named; `ConfigError` for what is no plain specifier."""
    try:
        return tuple(sorted({_normalised(requirement) for requirement in requirements}))
    except InvalidRequirement as error:
        raise ConfigError(
            f"A test requirement is wrong: {error}",
            mend='Write names with version specifiers, such as "requests>=2.31".',
        ) from None


def applicable(requirements: Iterable[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return those whose markers hold for an interpreter, without their markers."""
    found = []
    for text in requirements:
        requirement = Requirement(text)
        if _holds(requirement, environment):
            requirement.marker = None
            found.append(str(requirement))
    return tuple(found)


def package_name(requirement: str) -> str:
    """Return the normalised name of the package that a specifier asks for."""
    return canonicalize_name(Requirement(requirement).name)


def _holds(requirement: Requirement, environment: Mapping[str, str]) -> bool:
    if requirement.marker is None:
        return True
    try:
        return requirement.marker.evaluate({"extra": "", **environment})
    except (UndefinedComparison, UndefinedEnvironmentName):
        return True


def _normalised(text: str) -> str:
    if len(text) > _LONGEST or not text.isprintable():
        raise InvalidRequirement(f"{text[:60]!r} is no requirement.")
    requirement = Requirement(text)
    if requirement.url is not None:
        raise InvalidRequirement(f"{text!r} names a URL.")
    requirement.name = canonicalize_name(requirement.name)
    return str(requirement)


class _Collection:
    """Requirements and warnings as they are found."""

    def __init__(self) -> None:
        self._found: set[str] = set()
        self._warnings: list[str] = []
        self._project = ""

    def finish(self) -> Declared:
        found = sorted(self._found)
        if len(found) > _MOST:
            self._warnings.append(f"Only the first {_MOST} of {len(found)} requirements are used.")
        return Declared(tuple(found[:_MOST]), tuple(dict.fromkeys(self._warnings)))

    def read_pyproject(self, text: str) -> None:
        try:
            table = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            self._warnings.append(f"pyproject.toml cannot be read: {str(error)[:200]}")
            return
        project = _table(table, "project")
        name = project.get("name")
        self._project = canonicalize_name(name) if isinstance(name, str) else ""
        extras = _table(project, "optional-dependencies")
        groups = _table(table, "dependency-groups")
        lines = list(_strings(project.get("dependencies")))
        for group in _GROUPS:
            lines += _strings(extras.get(group))
            lines += _group(groups, group, set())
        for line in lines:
            self._take("pyproject.toml", line)

    def read_requirements_file(self, path: str, text: str, known: frozenset[str]) -> None:
        folder = path.rpartition("/")[0]
        for raw in text.replace("\\\r\n", " ").replace("\\\n", " ").splitlines():
            line = _COMMENT.sub("", raw).strip()
            include = _INCLUDE.match(line)
            if not line or _ITSELF.match(line):
                continue
            if include and (f"{folder}/{include[1]}" if folder else include[1]) in known:
                continue
            self._take(path, _TRAILING_OPTIONS.sub("", line))

    def _take(self, path: str, line: str) -> None:
        try:
            requirement = _normalised(line)
        except InvalidRequirement:
            self._warnings.append(f"{path}: `{line[:100]}` is not a plain requirement; left out.")
            return
        if package_name(requirement) != self._project:
            self._found.add(requirement)


def _table(parent: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = parent.get(key)
    return value if isinstance(value, dict) else {}


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, str))


def _group(groups: Mapping[str, object], name: str, seen: set[str]) -> Iterator[str]:
    """Yield a dependency group's lines, with those of the groups that it includes."""
    if name in seen:
        return
    seen.add(name)
    value = groups.get(name)
    yield from _strings(value)
    for item in value if isinstance(value, list) else ():
        included = item.get("include-group") if isinstance(item, dict) else None
        if isinstance(included, str):
            yield from _group(groups, included, seen)
