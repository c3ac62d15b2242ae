"""What the agent says to a model: standing instructions, the task, and what is known of it."""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from turnout.agent.base import Brief, PromptName
from turnout.agent.tools.output import cap
from turnout.agent.tools.run_tests import headline
from turnout.core.messages import Message, SystemMessage, UserMessage
from turnout.core.runs import Patch, TestReport

__all__ = [
    "condensing",
    "opening",
    "planning",
    "prompt",
    "reviewing",
    "shortening",
]

_TESTS_CAP = 3_000
_SUMMARY_CAP = 12_000
_DIFF_CAP = 24_000


@cache
def prompt(name: PromptName) -> str:
    """Return the standing instructions kept in `prompts/NAME.md`."""
    return files("turnout.agent").joinpath("prompts", f"{name}.md").read_text("utf-8").strip()


def planning(brief: Brief, paths: Sequence[str], guidance: str = "") -> tuple[Message, ...]:
    """Open the conversation of the plan."""
    return SystemMessage(prompt("plan")), UserMessage(_task(brief, paths, guidance))


def opening(
    brief: Brief, paths: Sequence[str], plan: str, name: PromptName, guidance: str = ""
) -> tuple[Message, ...]:
    """Open the conversation of the act steps."""
    planned = f"\n\nPlan:\n{plan}" if plan else ""
    task = UserMessage(_task(brief, paths, guidance) + planned)
    return SystemMessage(prompt(name)), task


def condensing(told: str) -> tuple[Message, ...]:
    """Ask for the summary of a conversation so far."""
    return SystemMessage(prompt("condense")), UserMessage(told)


def shortening(output: str) -> tuple[Message, ...]:
    """Ask for the summary of a long output."""
    return SystemMessage(prompt("summary")), UserMessage(cap(output, _SUMMARY_CAP).text)


def reviewing(task: str, patch: Patch, tests: TestReport | None) -> tuple[Message, ...]:
    """Ask for the description of a change."""
    diff = cap(patch.diff.decode(errors="backslashreplace"), _DIFF_CAP).text
    parts = [f"Task:\n{task}", f"Diff:\n{diff}", f"Tests with the change:\n{_tests(tests)}"]
    return SystemMessage(prompt("answer")), UserMessage("\n\n".join(parts))


def _task(brief: Brief, paths: Sequence[str], guidance: str) -> str:
    parts = [brief.prompt]
    if guidance:
        parts.append(f"What the repository says to whoever works on it:\n{guidance}")
    if brief.lessons:
        parts.append(f"An earlier attempt did not succeed. What it showed:\n{brief.lessons}")
    if paths:
        parts.append("Files of the repository:\n" + "\n".join(paths))
    if brief.test_command is None:
        parts.append("No tests were found.")
    else:
        parts.append(
            f"Tests, run with `{brief.test_command}` before any change:\n"
            + _tests(brief.tests_before)
        )
    if brief.reachable:
        parts.append("Commands reach these hosts, and no others:\n" + "\n".join(brief.reachable))
    return "\n\n".join(parts)


def _tests(report: TestReport | None) -> str:
    if report is None:
        return "They were not run."
    return f"{headline(report)}\n{cap(report.output, _TESTS_CAP).text}".strip()
