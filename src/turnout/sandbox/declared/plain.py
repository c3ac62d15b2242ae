"""Plain requirements: a name with version specifiers, extras and markers, and nothing else.

A repository is not trusted: a URL, a path, an index or any other option is never taken from it.
"""

from collections.abc import Iterable, Mapping, Sequence

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from turnout.errors import ConfigError

__all__ = ["applicable", "explicit", "is_test_group", "package_name", "pinned", "plain"]

_LONGEST = 300
_TEST_GROUPS = (
    *("test", "tests", "testing", "unittest", "unittests", "pytest"),
    *("dev", "devel", "develop", "development"),
)


def is_test_group(name: str) -> bool:
    """Say whether an extra or a dependency group of this name is for those who run the tests."""
    return canonicalize_name(name) in _TEST_GROUPS


def plain(text: str) -> str:
    """Return a requirement in its normal form; `InvalidRequirement` where it is not plain."""
    if len(text) > _LONGEST or not text.isprintable():
        raise InvalidRequirement(f"{text[:60]!r} is no requirement.")
    requirement = Requirement(text)
    if requirement.url is not None:
        raise InvalidRequirement(f"{text!r} names a URL.")
    requirement.name = canonicalize_name(requirement.name)
    return str(requirement)


def explicit(requirements: Sequence[str]) -> tuple[str, ...]:
    """Check requirements that a user named; `ConfigError` for what is no plain specifier."""
    try:
        return tuple(sorted({plain(requirement) for requirement in requirements}))
    except InvalidRequirement as error:
        raise ConfigError(
            f"A test requirement is wrong: {error}",
            mend='Write names with version specifiers, such as "requests>=2.31".',
        ) from None


def applicable(requirements: Iterable[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return those whose markers hold for an interpreter, without their markers.

    A marker that asks for an extra holds where the extra is for tests.
    """
    found: dict[str, None] = {}
    for text in requirements:
        requirement = Requirement(text)
        if _holds(requirement, environment):
            requirement.marker = None
            found[str(requirement)] = None
    return tuple(found)


def pinned(pins: Iterable[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the pins that hold for an interpreter; none of a package that has several."""
    found: dict[str, set[str]] = {}
    for pin in applicable(pins, environment):
        found.setdefault(package_name(pin), set()).add(pin)
    return tuple(sorted(next(iter(pins)) for pins in found.values() if len(pins) == 1))


def package_name(requirement: str) -> str:
    """Return the normalised name of the package that a specifier asks for."""
    return canonicalize_name(Requirement(requirement).name)


def _holds(requirement: Requirement, environment: Mapping[str, str]) -> bool:
    if requirement.marker is None:
        return True
    extras = ("", *_TEST_GROUPS) if "extra" in str(requirement.marker) else ("",)
    try:
        return any(requirement.marker.evaluate({**environment, "extra": one}) for one in extras)
    except (UndefinedComparison, UndefinedEnvironmentName):
        return True
