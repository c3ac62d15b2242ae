"""Which trials a report is about: the newest of each unit, and those that may be compared."""

from collections.abc import Iterable, Sequence

from turnout.evals.report.model import Unfit
from turnout.evals.trials.model import Mode, Trial, Unit

__all__ = ["apart", "fit", "named", "newest", "ordered", "replaced", "unfit_of"]


def newest(trials: Iterable[Trial]) -> tuple[Trial, ...]:
    """Return the last result of each unit, in the order in which units first appear."""
    found: dict[Unit, Trial] = {}
    for trial in trials:
        found[trial.unit] = trial
    return tuple(found.values())


def replaced(trials: Iterable[Trial]) -> dict[Unit, list[Trial]]:
    """Return the runs of each unit whose result a later run of it has taken the place of.

    A run that was graded again is one run.
    """
    runs: dict[Unit, list[Trial]] = {}
    for trial in trials:
        own = runs.setdefault(trial.unit, [])
        if trial.run_id is not None:
            own[:] = [each for each in own if each.run_id != trial.run_id]
        own.append(trial)
    return {unit: own[:-1] for unit, own in runs.items() if len(own) > 1}


def apart(trials: Iterable[Trial]) -> list[list[Trial]]:
    """Return trials by mode and strictness; results of different ones are never mixed."""
    found: dict[tuple[Mode, bool], list[Trial]] = {}
    for trial in trials:
        found.setdefault((trial.mode, trial.strict), []).append(trial)
    return [own for _, own in sorted(found.items())]


def named(trials: Sequence[Trial], order: Sequence[str] = ()) -> dict[str, list[Trial]]:
    """Return trials by the name of their arm, as in `order`; others in the order of the results.

    An arm whose policy or model changed under the same name is another one: its name is followed
    by the start of its digest.
    """
    digests: dict[str, set[str]] = {}
    for trial in trials:
        digests.setdefault(trial.arm, set()).add(trial.arm_digest)
    found: dict[str, list[Trial]] = {}
    for trial in trials:
        several = len(digests[trial.arm]) > 1
        name = f"{trial.arm} ({trial.arm_digest[:8]})" if several else trial.arm
        found.setdefault(name, []).append(trial)
    places = {name: place for place, name in enumerate(order)}
    arms = {name: own[0].arm for name, own in found.items()}
    return dict(sorted(found.items(), key=lambda each: places.get(arms[each[0]], len(places))))


def ordered(groups: dict[str, list[Trial]], wished: str | None) -> dict[str, list[Trial]]:
    """Return the arms with that first which is compared with the others.

    It is the one that is wished, else `auto`, in its newest form; else the first of the results.
    """
    named_so = [name for arm in ("auto", wished) if arm for name in groups if _is(name, arm)]
    first = named_so[-1] if named_so else None
    return dict(sorted(groups.items(), key=lambda item: item[0] != first))


def _is(name: str, arm: str) -> bool:
    """Whether a name is that of an arm, with or without its digest."""
    return name == arm or name.startswith(f"{arm} (")


def unfit_of(trials: Iterable[Trial], told: Iterable[Unfit] = ()) -> tuple[Unfit, ...]:
    """Return the tasks whose tests say nothing of a fix.

    Those that a check of the set has found, and those whose tests were seen not to fail before.
    """
    found = {(each.instance_id, each.digest): each for each in told}
    unfit: dict[tuple[str, str], Unfit] = {}
    for trial in trials:
        key = (trial.instance_id, trial.instance_digest)
        if key in found:
            unfit.setdefault(key, found[key])
        elif trial.failed_before is False:
            reason = trial.detail or "Its tests do not fail on the base commit as they should."
            unfit.setdefault(key, Unfit(*key, reason))
    return tuple(unfit.values())


def fit(trials: Iterable[Trial], unfit: Sequence[Unfit]) -> list[Trial]:
    """Return the trials of all other tasks."""
    out = {(each.instance_id, each.digest) for each in unfit}
    return [t for t in trials if (t.instance_id, t.instance_digest) not in out]
