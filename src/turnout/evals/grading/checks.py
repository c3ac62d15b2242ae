"""What a run of the tests with a patch shows, beside what they showed without any."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from turnout.core.runs import TestReport
from turnout.evals.grading.before import Before
from turnout.evals.grading.bent import Bent, bend
from turnout.evals.grading.canary import Canary
from turnout.evals.grading.names import as_called_here, count, some
from turnout.evals.instances.model import Instance

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


def shown_by(
    report: TestReport, instance: Instance, before: Before, canary: Canary | None
) -> Shown:
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
        or ("" if instance.fail_to_pass else _others(report, before, canary))
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
    """Return what else is wrong where no test is named, so that every one must pass."""
    failed = canary.without(report.failed) if canary else report.failed
    if failed:
        return f"{count(failed)} failed: {some(failed)}."
    if report.exit_code != (1 if canary else 0):
        return f"No test is said to fail, yet the tests ended with status {report.exit_code}."
    heard = {test.partition("::")[0] for test in (*before.passed, *before.failed)}
    seen = {test.partition("::")[0] for test in report.passed}
    unseen = [path for path in before.tests if path in heard and path not in seen]
    return f"No test of {some(unseen)} was reported as passed." if unseen else ""


def bent_files(
    instance: Instance, before: Before, report: TestReport, word: str
) -> Mapping[str, Bent]:
    """Return the files of tests bent where they must pass now, by path; empty: none can be."""
    wanted: dict[str, list[str]] = {}
    for test in _mended(instance, before, report):
        path, _, name = test.partition("::")
        wanted.setdefault(path, []).append(name)
    found = {}
    for path, names in wanted.items():
        data = before.tests.get(path, before.standing.get(path))
        if data is not None and path.endswith(".py"):
            bent = bend(data.decode(errors="replace"), names, word)
            if bent is not None:
                found[path] = bent
    return found


def _mended(instance: Instance, before: Before, report: TestReport) -> Iterator[str]:
    """Yield the tests that fail without a fix; of a file that could not be read, all."""
    for test in before.must if instance.fail_to_pass else report.passed:
        if instance.fail_to_pass or test in before.failed or test.split("::")[0] in before.failed:
            yield test


def is_forged(report: TestReport, bent: Mapping[str, Bent]) -> bool | None:
    """Say whether tests that can only fail were reported as passed; None: none was heard of."""
    ids = {f"{path}::{name}" for path, each in bent.items() for name in each.tests}
    passed = {test.partition("[")[0] for test in report.passed}
    failed = {test.partition("[")[0] for test in report.failed}
    if not ids.isdisjoint(passed - failed):
        return True
    return None if ids.isdisjoint(failed) else False
