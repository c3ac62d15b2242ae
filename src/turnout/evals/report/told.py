"""Under what the trials of a section were made, in words: all that one needs to make them again."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from turnout.core.money import format_usd
from turnout.evals.conditions.model import ArmUnder, Conditions, Limits, Machine, ModelUsed
from turnout.evals.report.model import Section
from turnout.evals.report.tables import Table
from turnout.evals.report.words import plural, seconds_words, set_words

__all__ = ["conditions_table", "told_conditions"]

_GIB: Final = 1024
_DIGEST: Final = 12
"""Characters of a digest that are shown; the JSON has all of it."""


def conditions_table(section: Section) -> Table:
    """Return the conditions of a section as a table of two columns."""
    rows = tuple(told_conditions(section))
    return Table("Run under", ("what", "value"), rows, left=2)


def told_conditions(section: Section) -> Iterator[tuple[str, str]]:
    """Yield what is known of the conditions, each with its name.

    Where commands differ in one of them, it is told of each.
    """
    facts, goes = section.facts, section.conditions
    yield "set", set_words(section)
    repositories = Counter(task.repo for task in section.tasks if task.repo)
    if repositories:
        each = sorted(repositories.items(), key=lambda item: (-item[1], item[0]))
        yield "repositories", ", ".join(f"{name} ({plural(n, 'task')})" for name, n in each)
    yield "set check", _check(section)
    yield "mode", f"{section.mode}, {'strict' if section.strict else 'lenient'}"
    yield from _each(goes, "tries", lambda each: f"{each.repeats} of each task by each arm")
    yield from _each(goes, "limits", lambda each: _limits(each.limits))
    yield from _each(goes, "tools", lambda each: each.surface)
    yield from _each(goes, "machine", lambda each: _machine(each.machine))
    yield from _each(goes, "seeds", _seeds)
    yield "Turnout", ", ".join(facts.harness)
    under = {arm.digest: arm for each in goes for arm in each.arms}
    for arm in section.arms:
        yield f"arm {arm.name}", _arm(arm.digest, under.get(arm.digest))
    used = dict.fromkeys(model for each in goes for model in each.models)
    for model in used:
        yield f"model {model.model}", _model(model)
    if not used and facts.models:
        yield "models", ", ".join(facts.models)
    if facts.environments:
        yield "environments", str(len(facts.environments))
    yield from _moments(section)


def _each(
    goes: Iterable[Conditions], name: str, words: Callable[[Conditions], str]
) -> Iterator[tuple[str, str]]:
    told = list(dict.fromkeys(words(each) for each in goes))
    if told:
        yield name, "; then ".join(told)


def _check(section: Section) -> str:
    if not section.checked:
        return "not made"
    return f"{plural(section.checked, 'task')} looked at, {len(section.unfit)} in no rate"


def _limits(limits: Limits) -> str:
    told = [
        "no time limit of a run"
        if limits.run_seconds is None
        else f"{seconds_words(limits.run_seconds)} a run"
    ]
    if limits.budget is not None:
        told.append(f"{format_usd(limits.budget)} in all")
    if limits.hours is not None:
        told.append(f"{limits.hours:g} hours")
    told += [
        f"{plural(limits.concurrency, 'run')} and {plural(limits.grading, 'grading')} at once",
        f"{limits.test_seconds:g} CPU seconds for grading tests",
    ]
    return ", ".join(told)


def _machine(machine: Machine) -> str:
    memory = f"{machine.memory_mib / _GIB:.1f} GiB"
    return (
        f"{plural(machine.cpus, 'CPU')} ({machine.processor}), {memory}, {machine.system}, "
        f"Python {machine.python}, sandboxes by {machine.sandbox}"
    )


def _seeds(conditions: Conditions) -> str:
    return "; ".join(f"{what}: {seed}" for what, seed in conditions.seeds.items())


def _arm(digest: str, under: ArmUnder | None) -> str:
    if under is None:
        return digest[:_DIGEST]
    revision = f"revision {under.revision}" if under.revision else "not a saved revision"
    policy = f"policy {under.policy}, {revision}, {under.policy_digest}"
    rules = f"; {under.rules}" if under.rules else ""
    return f"{under.asked}; {policy}; {digest[:_DIGEST]}{rules}"


def _model(model: ModelUsed) -> str:
    told = [model.id, f"works by {model.profile}"]
    if model.file:
        threads = plural(model.threads, "thread")
        told.append(
            f"{model.file} ({model.quantisation}, SHA-256 {model.sha256[:_DIGEST]}), {threads}"
        )
    if model.input_usd:
        told.append(f"${model.input_usd} in and ${model.output_usd} out a million tokens")
    else:
        told.append("price unknown")
    return ", ".join(told)


def _moments(section: Section) -> Iterator[tuple[str, str]]:
    facts = section.facts
    if section.conditions:
        begun = ", ".join(f"{each.at:%Y-%m-%d %H:%M %Z}" for each in section.conditions)
        yield "commands began", begun
    if facts.first is not None:
        yield "first run", f"{facts.first:%Y-%m-%d %H:%M %Z}"
    if facts.last is not None:
        yield "last run", f"{facts.last:%Y-%m-%d %H:%M %Z}"
