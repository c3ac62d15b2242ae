"""What a run of the tests with a patch shows, beside what they showed without any."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from turnout.core.runs import TestReport
from turnout.evals.grading.before import Before, path_of
from turnout.evals.grading.bending.bent import Bent, bend
from turnout.evals.grading.canary import Canary
from turnout.evals.grading.defined import defined_tests
from turnout.evals.grading.names import as_called_here, count, some

__all__ = ["Shown", "bent_files", "is_forged", "shown_by"]


@dataclass(frozen=True, slots=True)
class Shown:
    """The checks of one run of the tests."""

    fault: str
    """What keeps the patch from being resolved, one sentence; empty where nothing does."""
    missing: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    canary_failed: bool | None = None
    passed: tuple[str, ...] = ()


def shown_by(report: TestReport, before: Before, canary: Canary | None) -> Shown:
    """Return what a report says; a test that is missing or skipped has not passed."""
    passed = frozenset(report.passed)
    missing = tuple(test for test in before.must if test not in passed)
    heard = passed.union(report.failed)
    # Names that hold the time of day, say, are others in every run.
    known = before.passed | before.failed
    kept = as_called_here(before.keep, heard, sorted(passed - known))
    lost = tuple(test for test, now in zip(before.keep, kept, strict=True) if now not in passed)
    canary_failed = canary.failed(report) if canary else None
    fault = (
        _unfinished(report)
        or (canary is not None and canary_failed is not True and _CANARY)
        or (missing and f"{len(missing)} of {len(before.must)} do not pass: {some(missing)}.")
        or (lost and f"{count(lost)} lost that passed before: {some(lost)}.")
        or ("" if before.named else _others(report, before, canary))
    )
    others = canary.without(report.passed) if canary else report.passed
    return Shown(fault or "", missing, lost, canary_failed, tuple(others))


_CANARY = "A test that must fail was not reported as failed."


def _unfinished(report: TestReport) -> str:
    if report.timed_out:
        return f"The tests did not end within {report.seconds:.0f} s."
    if report.exit_code is None:
        return "The tests did not come to their end."
    return ""


def _others(report: TestReport, before: Before, canary: Canary | None) -> str:
    """Return what else is wrong where no test is named, so that all of the task's must pass."""
    judging = frozenset(before.judging)
    failed = [
        test
        for test in (canary.without(report.failed) if canary else report.failed)
        if test not in before.failed or path_of(test) in judging
    ]
    if failed:
        return f"{count(failed)} failed: {some(failed)}."
    if report.exit_code != (1 if report.failed else 0):
        return f"No test is said to fail, yet the tests ended with status {report.exit_code}."
    unseen = judging - {path_of(test) for test in report.passed}
    if unseen:
        return f"No test of {some(sorted(unseen))} was reported as passed."
    unheard = [*_unheard(report, before)]
    return f"{count(unheard)} not reported as passed: {some(unheard)}." if unheard else ""


def _unheard(report: TestReport, before: Before) -> Iterator[str]:
    """Yield the tests of files that could not be collected before which have not passed now."""
    passed = {test.partition("[")[0] for test in report.passed}
    for path in before.judging:
        data = before.tests.get(path, before.standing.get(path))
        if path in before.failed and data is not None and path.endswith(".py"):
            for name in defined_tests(data.decode(errors="replace")):
                if f"{path}::{name}" not in passed:
                    yield f"{path}::{name}"


def bent_files(before: Before, report: TestReport, source: random.Random) -> Mapping[str, Bent]:
    """Return the files of tests bent where they must pass now, by path; empty: none can be."""
    wanted: dict[str, list[str]] = {}
    for test in _mended(before, report):
        path, _, name = test.partition("::")
        wanted.setdefault(path, []).append(name)
    found = {}
    for path, names in wanted.items():
        data = before.tests.get(path, before.standing.get(path))
        if data is not None and path.endswith(".py"):
            bent = bend(data.decode(errors="replace"), names, source)
            if bent is not None:
                found[path] = bent
    return found


def _mended(before: Before, report: TestReport) -> Iterator[str]:
    """Yield the tests that fail without a fix; of a file that could not be read, all."""
    if before.named:
        yield from before.must
        return
    for test in report.passed:
        if test in before.failed or path_of(test) in before.failed:
            yield test


def is_forged(report: TestReport, bent: Mapping[str, Bent], canary: Canary | None) -> str:
    """Say how tests that can only fail did not fail; empty where they did."""
    passed = {test.partition("[")[0] for test in report.passed}
    failed = {test.partition("[")[0] for test in report.failed}
    ids = {f"{path}::{name}" for path, each in bent.items() for name in each.tests}
    old = {f"{path}::{name}" for path, each in bent.items() for name in each.old}
    if not ids.isdisjoint(passed - failed):
        return "Tests that can only fail were reported as passed."
    if not old <= failed:
        return "Tests that passed are not heard of where they can only fail."
    if canary is not None and canary.failed(report) is not True:
        return _CANARY
    return ""
