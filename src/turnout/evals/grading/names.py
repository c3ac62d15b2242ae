"""Names of tests: as this environment calls them, and a few of many in a sentence."""

from collections.abc import Collection, Sequence

__all__ = ["as_called_here", "count", "some"]

_SHOWN = 3
_LONGEST = 200


def as_called_here(
    tests: Sequence[str], heard: Collection[str], ended: Collection[str]
) -> tuple[str, ...]:
    """Return tests by the names that they have here.

    Versions of pytest name the parameters of a test differently. Where names of a test were not
    heard, and as many others of it `ended` as they should, it is those.
    """
    missing: dict[str, list[str]] = {}
    for test in tests:
        if test not in heard and test.endswith("]"):
            missing.setdefault(test.partition("[")[0], []).append(test)
    known = frozenset(tests)
    others: dict[str, list[str]] = {}
    for test in sorted(ended):
        if test not in known and test.endswith("]"):
            others.setdefault(test.partition("[")[0], []).append(test)
    renamed: dict[str, str] = {}
    for function, names in missing.items():
        if len(names) == len(others.get(function, ())):
            renamed.update(zip(names, others[function], strict=True))
    return tuple(renamed.get(test, test) for test in tests)


def count(tests: Sequence[str]) -> str:
    """Return `1 test`, `2 tests`."""
    return "1 test" if len(tests) == 1 else f"{len(tests)} tests"


def some(names: Sequence[str]) -> str:
    """Return the first of some names, and how many more there are."""
    more = len(names) - _SHOWN
    shown = (name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…" for name in names[:_SHOWN])
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
