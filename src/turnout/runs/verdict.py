"""What our own test runs say about a patch; no model is asked."""

import re
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final

from turnout.core.runs import Patch, TestReport, Verdict, VerdictName
from turnout.sandbox.testrun import USUAL_TESTS, TestPaths

__all__ = ["NAME_TESTS", "controls", "judge"]

NAME_TESTS: Final = (
    "Name the test command with the order (`--test-command`), or as `[tests] command`."
)
"""What to do where no tests were found."""

_CONTROL_NAMES = re.compile(
    r"conftest\.py|\.?pytest\.(?:ini|toml)|(?:site|user)customize\.py|entry_points\.txt"
    r"|.*\.pth|.*\.py[co]"
    r"|\.mocharc(?:\..*)?|(?:jest|vitest|karma|ava|playwright|cypress)\.conf(?:ig)?\..*"
)
"""Files that decide which tests run and what counts as passing, wherever they are.

`entry_points.txt` of a package's metadata names plugins, and compiled files stand for sources that
they need not come from.
"""

_MODULE = re.compile(
    r"(?:src/)?([^/.]+)(?:\.(?:[^/]*\.)?(?:py|so)|/__init__\.(?:[^/]*\.)?(?:py|so))"
)
"""What `import` finds first, at the two places where tests look for modules of the repository."""

_RUNNER: Final = frozenset(
    {
        *("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments", "tomli"),
        *("exceptiongroup", "typing_extensions", "colorama", "attr", "attrs", "xdist", "execnet"),
        "turnout_report",
    }
)
"""What pytest consists of or asks for, in any version."""
_MAY_BE_RUNNER = re.compile(r"_?pytest.*")
_NOT_TAKEN = frozenset({"test"})
"""A module of the standard library whose name every repository may use for itself."""

_SHOWN = 3


def judge(
    before: TestReport | None,
    after: TestReport | None,
    patch: Patch,
    test_files: Sequence[str],
    *,
    steered: Collection[str] = (),
    paths: TestPaths = USUAL_TESTS,
) -> Verdict:
    """Return the verdict on `patch`.

    `before` and `after` are our runs of the same tests without and with the patch, None where
    none could be run; `test_files` are the test files that existed at base, `steered` the files in
    which the patch changes what steers the tests, `paths` those by which a new file is a test.
    """
    existing = {_shown(path) for path in test_files}.union(_told(before))
    touched = tuple(
        change.path
        for change in patch.files
        if change.path in existing
        or change.path in steered
        or controls(change.path, added=change.status == "added")
    )
    added = [change.path for change in patch.files if change.status == "added"]
    fresh = tuple(path for path in added if paths.match(path) and path not in touched)
    failed_before = _failed(before)
    passes_after = after.ok if after is not None and after.found else None

    def verdict(name: VerdictName, detail: str) -> Verdict:
        return Verdict(name, failed_before, passes_after, not touched, touched, detail, fresh)

    if not patch:
        name: VerdictName = "no_tests" if failed_before is None else "not_resolved"
        return verdict(name, _nothing(patch.excluded))
    if before is None or not before.found:
        return verdict("no_tests", _without_tests(after))
    if touched:
        return verdict("tests_touched", f"The patch changes what judges it: {_some(touched)}.")
    if after is None:
        return verdict("not_resolved", "The tests could not be run with the patch.")
    if trouble := _trouble(before, after):
        return verdict("not_resolved", trouble)
    if failed_before:
        return verdict("resolved", _mended(before, after))
    return verdict("no_regression", _kept(after))


def _nothing(excluded: Sequence[str]) -> str:
    if not excluded:
        return "Nothing was changed."
    return f"Nothing was changed but what no diff holds: {_some(excluded)}."


def _shown(path: str) -> str:
    """Return a path as a patch names it."""
    return path.encode(errors="surrogateescape").decode(errors="backslashreplace")


def _told(before: TestReport | None) -> Iterator[str]:
    """Yield the files whose tests ran, whatever they are called.

    A docstring's test is part of the code that it describes: its name is that of the code, with
    dots.
    """
    for test in (*before.passed, *before.failed) if before is not None else ():
        path, _, name = test.partition("::")
        name = name.partition("[")[0]
        if name and "." not in name and name != PurePosixPath(path).stem:
            yield path


def controls(path: str, *, added: bool, plugins: Collection[str] | None = None) -> bool:
    """Say whether a changed file decides, by its path alone, which tests run and what passes.

    `plugins`: the modules of those that the environment has; None: it may have any.
    """
    if _CONTROL_NAMES.fullmatch(PurePosixPath(path).name):
        return True
    module = _MODULE.fullmatch(path)
    return added and module is not None and _taken(module[1], plugins)


def _taken(name: str, plugins: Collection[str] | None) -> bool:
    """Say whether a module of this name would stand in for one that the tests rely on."""
    if name in _RUNNER or (name in sys.stdlib_module_names and name not in _NOT_TAKEN):
        return True
    return _MAY_BE_RUNNER.fullmatch(name) is not None if plugins is None else name in plugins


def _failed(before: TestReport | None) -> bool | None:
    return None if before is None or not before.found else not before.ok


def _without_tests(after: TestReport | None) -> str:
    if after is None or not after.found:
        return f"No tests were found, so nothing judges the patch. {NAME_TESTS}"
    passing = "pass" if after.ok else "do not all pass"
    return f"No tests existed before the patch; those that it brings {passing}."


def _trouble(before: TestReport, after: TestReport) -> str:
    """Return what is still wrong; empty where every test that was known passes."""
    if after.timed_out:
        return f"The tests did not end within {after.seconds:.0f} seconds with the patch."
    known, ran = frozenset(before.failed), frozenset(after.passed) | frozenset(after.failed)
    still = [test for test in before.failed if not _passes(test, after)]
    fresh = [test for test in after.failed if test not in known]
    broken = [test for test in fresh if not _revealed(test, known)]
    lost = [test for test in before.passed if test not in ran]
    clauses = []
    if still:
        clauses.append(
            f"{len(known) - len(still)} of {_count(known, 'failing')} pass now; "
            f"{len(still)} still {_fail(still)}: {_some(still)}"
        )
    if broken:
        clauses.append(f"{_count(broken)} broken by the patch: {_some(broken)}")
    if lost:
        clauses.append(f"{_count(lost)} that passed before did not run: {_some(lost)}")
    if not clauses and not after.ok:
        clauses.append(_unnamed(before, after))
    return f"{'. '.join(clauses)}." if clauses else ""


def _passes(test: str, after: TestReport) -> bool:
    """Whether a test passes now; a file that could not be collected stands for all its tests."""
    if test in after.passed:
        return True
    inside = f"{test}::"
    return any(t.startswith(inside) for t in after.passed) and not any(
        t == test or t.startswith(inside) for t in after.failed
    )


def _revealed(test: str, known: frozenset[str]) -> bool:
    """Whether a failure was hidden before because its file could not be collected."""
    return any(test.startswith(f"{file}::") for file in known)


def _unnamed(before: TestReport, after: TestReport) -> str:
    how = "ended by a signal" if after.exit_code is None else f"exit status {after.exit_code}"
    return f"The tests {'fail with the patch' if before.ok else 'still fail'} ({how})"


def _mended(before: TestReport, after: TestReport) -> str:
    if not after.passed:
        return f"The tests failed before and pass now. {_by_status(after)}"
    if not before.failed:
        return "The tests failed before and pass now."
    verb = "passes" if len(before.failed) == 1 else "pass"
    return f"{_count(before.failed, 'failing')} {verb} now; {_count(after.passed)} in all."


def _kept(after: TestReport) -> str:
    if not after.passed:
        return f"Nothing failed before or after. {_by_status(after)}"
    return f"Nothing failed before or after ({_count(after.passed)})."


def _by_status(after: TestReport) -> str:
    """Return how little is known where the runner reports no single test."""
    return f"Only the exit status of `{after.command}` says so: it reported no single test."


def _fail(tests: Sequence[str]) -> str:
    return "fails" if len(tests) == 1 else "fail"


def _count(tests: Collection[str], word: str = "") -> str:
    number = len(tests)
    return " ".join(filter(None, (str(number), word, "test" if number == 1 else "tests")))


def _some(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
