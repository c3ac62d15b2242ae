"""What became of each task: every trial, its checks, its run and its patch."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from turnout.core.ids import RunId
from turnout.evals.report.counting.arms import spent
from turnout.evals.report.html.markup import Html, element, join, text
from turnout.evals.report.model import ArmResult, InstanceResults, Section
from turnout.evals.report.tables import task_grade
from turnout.evals.report.texts import TaskText
from turnout.evals.report.words import plural, seconds_words, usd
from turnout.evals.trials.model import Trial

__all__ = ["RunLink", "anchors_of", "task_list"]

RunLink = Callable[[RunId], str | None]
"""Where a run's own page is; None where it has none."""

_LINES: Final = 300
_WIDTH: Final = 400
"""Of a patch; the results file has all of it."""
_FEWEST_LINES: Final = 20
_LINES_IN_ALL: Final = 60_000
"""Of all patches of a section together; where there are many, less of each is shown."""

_STATEMENT: Final = 8_000
"""Characters of a task that are shown."""
_TESTS: Final = 20
_CHECKS: Final = {True: "yes", False: "no"}


def anchors_of(section: Section, prefix: str) -> Mapping[str, str]:
    """Return the ids of the tasks of a section by their names; the newest of each name."""
    return {task.instance_id: _anchor(prefix, n) for n, task in enumerate(section.tasks)}


def _anchor(prefix: str, place: int) -> str:
    return f"{prefix}-task-{place + 1}"


def task_list(
    section: Section,
    prefix: str,
    link: RunLink,
    heading: str,
    texts: Mapping[tuple[str, str], TaskText],
) -> Html:
    """Return one line for each task, which opens; they stand under `heading`."""
    apart = {name for each in section.comparisons for name in each.discordant}
    trials = sum(len(result.trials) for task in section.tasks for result in task.results)
    lines = min(_LINES, max(_FEWEST_LINES, _LINES_IN_ALL // max(1, trials)))
    shown = _Shown(link, heading, lines, texts)
    return join(
        _task(task, _anchor(prefix, place), task.instance_id in apart, shown)
        for place, task in enumerate(section.tasks)
    )


@dataclass(frozen=True, slots=True)
class _Shown:
    """How trials are shown."""

    link: RunLink
    heading: str
    lines: int
    """Of each patch."""
    texts: Mapping[tuple[str, str], TaskText]


def _task(task: InstanceResults, anchor: str, apart: bool, shown: _Shown) -> Html:
    chips = [_chip(result) for result in task.results]
    if apart:
        chips.append(element("span", text("came out differently"), class_="apart"))
    facts = ", ".join(
        fact
        for fact in (task.repo, f"{task.difficulty} lines of code" if task.difficulty else "")
        if fact
    )
    return element(
        "details",
        element(
            "summary",
            element("span", text(task.instance_id), class_="name"),
            element("span", text(task.title), class_="title") if task.title else Html(""),
            *chips,
        ),
        element("p", text(facts), class_="note") if facts else Html(""),
        _told_task(task, shown),
        *(_trial(trial, result.arm, shown) for result in task.results for trial in result.trials),
        id=anchor,
        class_="task",
    )


def _told_task(task: InstanceResults, shown: _Shown) -> Html:
    """Return what a task says, the tests that must pass and the known fix."""
    told = shown.texts.get((task.instance_id, task.digest))
    if told is None:
        return Html("")
    tests = ", ".join(told.tests[:_TESTS])
    if len(told.tests) > _TESTS:
        tests += f" and {len(told.tests) - _TESTS} more"
    facts = [
        element("div", element("dt", text(name)), element("dd", text(value)))
        for name, value in (("must pass", tests),)
        if value
    ]
    statement = told.statement[:_STATEMENT] + ("…" if len(told.statement) > _STATEMENT else "")
    return element(
        "section",
        element("h4", text("The task")),
        element("p", text(statement), class_="statement"),
        element("dl", *facts),
        _patch(told.patch, f"{task.instance_id}, the known fix: {shown.heading}", shown.lines),
        class_="trial given",
    )


def _chip(result: ArmResult) -> Html:
    good = result.tries > 0 and result.resolved == result.tries
    class_ = "good" if good else "mixed" if result.resolved else "bad" if result.tries else "lost"
    return element("span", text(f"{result.arm}: {task_grade(result)}"), class_=f"chip {class_}")


def _trial(trial: Trial, arm: str, shown: _Shown) -> Html:
    heading = arm if trial.attempt == 1 else f"{arm}, try {trial.attempt}"
    facts = [
        element("div", element("dt", text(name)), element("dd", value))
        for name, value in _facts(trial, shown.link)
    ]
    return element(
        "section",
        element("h4", text(f"{heading}: {trial.grade}")),
        element("dl", *facts),
        _patch(trial.diff, f"{trial.instance_id}, {heading}: {shown.heading}", shown.lines),
        class_="trial",
    )


def _facts(trial: Trial, link: RunLink) -> Iterator[tuple[str, Html]]:
    if trial.detail:
        yield "why", text(trial.detail)
    if trial.run_id is not None:
        yield "run", _run(trial.run_id, link)
    if trial.outcome:
        ended = f"{trial.outcome}. {trial.reason}" if trial.reason else trial.outcome
        yield "ended", text(ended)
    checks = (
        ("failed before", trial.failed_before),
        ("passes after", trial.passes_after),
        ("tests untouched", trial.tests_untouched),
        ("test bound to fail did", trial.canary_failed),
        ("tests with bent expectations failed", trial.bent_failed),
    )
    made = [f"{name}: {_CHECKS[found]}" for name, found in checks if found is not None]
    yield "checks", text(", ".join(made) or "none was made")
    took = f"{plural(trial.steps, 'step')}, {seconds_words(trial.seconds)}, {usd(spent(trial))}"
    yield "took", text(took)
    calls = f"{plural(trial.tool_calls, 'tool call')}, {trial.tool_failures} failed, "
    yield "calls", text(f"{calls}{trial.repairs} repaired")
    if trial.models:
        yield "models", text(", ".join(trial.models))
    if trial.dropped:
        yield "left out", text(", ".join(trial.dropped))
    for smell in trial.smells:
        yield "look at", text(smell)


def _run(run_id: RunId, link: RunLink) -> Html:
    place = link(run_id)
    command = element("code", text(f"turnout runs show {run_id} --full"))
    if place is None:
        return command
    return join([element("a", text(run_id), href=place), text(" · "), command])


def _patch(diff: str, whose: str, most: int) -> Html:
    if not diff:
        return Html("")
    lines = diff.split("\n", most)
    shown = [_line(line) for line in lines[:most]]
    if len(lines) > most:
        shown.append(text("… the rest is in the results file\n"))
    return element(
        "pre",
        element("code", *shown),
        class_="patch",
        role="region",
        tabindex=0,
        aria_label=f"Patch of {whose}",
    )


def _line(line: str) -> Html:
    cut = f"{line[:_WIDTH]} …" if len(line) > _WIDTH else line
    words = text(f"{cut}\n")
    if line.startswith(("+++", "---", "diff ", "@@")):
        return element("span", words, class_="head")
    if line.startswith("+"):
        return element("ins", words)
    return element("del", words) if line.startswith("-") else words
