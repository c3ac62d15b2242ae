"""What our own test runs say about a patch; no model is asked."""

from collections.abc import Collection, Sequence
from pathlib import PurePosixPath

from turnout.core.runs import Patch, TestReport, Verdict, VerdictName

__all__ = ["judge"]

_CONTROL_NAMES = frozenset(
    {"conftest.py", "pytest.ini", ".pytest.ini", "sitecustomize.py", "usercustomize.py"}
)
"""Files that decide which tests run and what counts as passing, wherever they are."""

_SHOWN = 3


def judge(
    before: TestReport | None,
    after: TestReport | None,
    patch: Patch,
    test_files: Sequence[str],
) -> Verdict:
    """Return the verdict on `patch`.

    `before` and `after` are our runs of the same tests without and with the patch, None where
    none could be run; `test_files` are the test files that existed at base.
    """
    touched = _touched(patch, test_files)
    failed_before = _failed(before)
    passes_after = after.ok if after is not None and after.found else None

    def verdict(name: VerdictName, detail: str) -> Verdict:
        return Verdict(name, failed_before, passes_after, not touched, touched, detail)

    if not patch:
        name: VerdictName = "no_tests" if failed_before is None else "not_resolved"
        return verdict(name, "Nothing was changed.")
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
    return verdict("no_regression", f"Nothing failed before or after ({_count(after.passed)}).")


def _touched(patch: Patch, test_files: Sequence[str]) -> tuple[str, ...]:
    existing = frozenset(test_files)
    return tuple(
        change.path
        for change in patch.files
        if (change.path in existing and change.status != "added") or _controls(change.path)
    )


def _controls(path: str) -> bool:
    name = PurePosixPath(path).name
    return name in _CONTROL_NAMES or name.endswith(".pth")


def _failed(before: TestReport | None) -> bool | None:
    return None if before is None or not before.found else not before.ok


def _without_tests(after: TestReport | None) -> str:
    if after is None or not after.found:
        return "No tests were found, so nothing judges the patch."
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
    if not before.failed:
        return "The tests failed before and pass now."
    verb = "passes" if len(before.failed) == 1 else "pass"
    return f"{_count(before.failed, 'failing')} {verb} now; {_count(after.passed)} in all."


def _fail(tests: Sequence[str]) -> str:
    return "fails" if len(tests) == 1 else "fail"


def _count(tests: Collection[str], word: str = "") -> str:
    number = len(tests)
    return " ".join(filter(None, (str(number), word, "test" if number == 1 else "tests")))


def _some(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
