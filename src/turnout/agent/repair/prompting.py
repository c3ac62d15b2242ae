"""The one prompt of a candidate: report, code, what the tests say, and what to reply with."""

from importlib.resources import files

from turnout.agent.repair.context import (
    definition_text,
    shown_code,
    shown_output,
    shown_region,
    shown_tests,
    shown_texts,
    without_body,
)
from turnout.agent.repair.grafting.matching import Target
from turnout.agent.repair.ladder import Ask, Rung
from turnout.agent.repair.localise import Suspects
from turnout.agent.repair.reading import Sources
from turnout.core.messages import Message, SystemMessage, UserMessage
from turnout.core.runs import TestReport

__all__ = ["Prompter"]

_REPORT_CHARS = 3_000
_CODE_CHARS = 9_000
_OUTPUT_CHARS = 1_800
_TESTS_CHARS = 3_000
_REGION_CHARS = 4_000


class Prompter:
    """Builds the prompts of one run; most begin alike, so that a prompt cache answers for that."""

    def __init__(
        self, report: str, sources: Sources, suspects: Suspects, before: TestReport
    ) -> None:
        self._report = f"Bug report: {report[:_REPORT_CHARS].strip()}"
        self._sources = sources
        self._suspects = suspects
        self._before = before
        output = shown_output(before.output, _OUTPUT_CHARS)
        self._output = f"Failing test output:\n```\n{output}\n```"

    def messages(self, rung: Rung) -> tuple[Message, ...]:
        """Return the whole conversation of one candidate."""
        return SystemMessage(_read("system")), UserMessage(self._question(rung))

    def _question(self, rung: Rung) -> str:
        if not self._suspects.modules:
            return self._plain_question()
        if rung.target is None:
            return self._parts(self._code(self._suspects), self._output, _read(rung.ask))
        if rung.ask == "edit":
            region = shown_region(self._suspects, rung.target, _REGION_CHARS)
            return self._parts(self._output, region, _about("edit", rung.target))
        gap = without_body(self._suspects, rung.target) if rung.ask == "rewrite" else None
        if gap is None:
            # What has no body to leave out, such as a constant, is named instead.
            text = definition_text(self._suspects, rung.target)
            ask = _about("name", rung.target).replace("{code}", text)
            return self._parts(self._code(self._suspects), self._output, ask)
        tests = shown_tests(self._sources.tests, self._before.failed, _TESTS_CHARS)
        return self._parts(self._code(gap), tests, _about("rewrite", rung.target))

    def _plain_question(self) -> str:
        tests = shown_texts(self._sources.other_tests, self._suspects.lines, _TESTS_CHARS)
        parts = [tests] if tests else []
        return self._parts(self._code(self._suspects), *parts, self._output, _read("search"))

    def _code(self, suspects: Suspects) -> str:
        return shown_code(suspects, self._sources.others, _CODE_CHARS)

    def _parts(self, *parts: str) -> str:
        return "\n\n".join([self._report, *parts])


def _about(ask: Ask, target: Target) -> str:
    return _read(ask).replace("{path}", target.path).replace("{name}", target.name)


def _read(name: str) -> str:
    path = files("turnout.agent.repair").joinpath("prompts", f"{name}.md")
    return path.read_text("utf-8").strip()
