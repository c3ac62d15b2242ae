"""The one prompt of a candidate: report, code, what the tests say, and what to reply with."""

from importlib.resources import files

from turnout.agent.repair.grafting.excerpt import Region
from turnout.agent.repair.grafting.matching import Target
from turnout.agent.repair.ladder import Ask, Rung
from turnout.agent.repair.reading import Sources
from turnout.agent.repair.showing.code import (
    shown_code,
    shown_definition,
    shown_lines,
    shown_tests,
    shown_texts,
    statement_text,
    without_body,
)
from turnout.agent.repair.showing.marks import errors_by_line
from turnout.agent.repair.showing.output import shown_errors, shown_output
from turnout.agent.repair.suspects import Suspects
from turnout.core.messages import AssistantMessage, Message, SystemMessage, UserMessage
from turnout.core.runs import TestReport

__all__ = ["Prompter"]

_REPORT_CHARS = 3_000
_CODE_CHARS = 9_000
_WHOLE_CHARS = 6_000
"""Of all code together, up to which it is shown whole before one definition is."""
_AROUND_CHARS = 2_500
"""Of code around a body that is to be written anew, where the code is not shown whole."""
_OUTPUT_CHARS = 1_800
_ERROR_CHARS = 1_200
_TESTS_CHARS = 3_000
_CHARS_PER_TOKEN = 3
_SPARE_TOKENS = 250
"""In a reply, beside the code that was shown."""
_FAILING_CHARS = 1_800
_FORK_TOKENS = 96
"""Until a fork is back at a line that was said before."""


class Prompter:
    """Builds the prompts of one run; most begin alike, so that a prompt cache answers for that.

    Reading a prompt is what takes a small model's time where there is no accelerator: what is shown
    is what the question needs.
    """

    def __init__(
        self, report: str, sources: Sources, suspects: Suspects, before: TestReport
    ) -> None:
        self._report = f"Bug report: {report[:_REPORT_CHARS].strip()}"
        self._sources = sources
        self._suspects = suspects
        self._before = before
        output = shown_output(before.output, _OUTPUT_CHARS)
        self._errors = errors_by_line(before.output)
        self._output = f"Failing test output:\n```\n{output}\n```"
        size = sum(len(module.data) for module in suspects.modules)
        self.whole = size <= _WHOLE_CHARS
        """Whether a prompt can show all the code."""

    def messages(self, rung: Rung) -> tuple[Message, ...]:
        """Return the whole conversation of one candidate."""
        asked = (SystemMessage(_read("system")), UserMessage(self._question(rung)))
        return asked if rung.fork is None else (*asked, AssistantMessage(rung.fork.begun))

    def most_tokens(self, rung: Rung) -> int | None:
        """Return how long a reply that is about one definition may be; None where it is not."""
        if rung.fork is not None:
            return _FORK_TOKENS
        if rung.target is None:
            return None
        return _SPARE_TOKENS + len(self._focus(rung.target, rung.region)) // _CHARS_PER_TOKEN

    def _question(self, rung: Rung) -> str:
        if not self._suspects.modules:
            return self._plain_question()
        if rung.target is None:
            return self._parts(self._code(self._suspects), self._output, _read(rung.ask))
        if rung.ask == "rewrite":
            gap = without_body(self._suspects, rung.target)
            if gap is not None:
                tests = self._tests(_TESTS_CHARS)
                return self._parts(self._code(gap), tests, _about("rewrite", rung.target))
        code = self._focus(rung.target, rung.region)
        ask = _about("name" if rung.ask == "rewrite" else rung.ask, rung.target)
        if rung.region is not None:
            said = statement_text(self._suspects, rung.target, rung.region)
            ask = ask.replace("{code}", said)
        return self._parts(*self._failure(), code, ask)

    def _focus(self, target: Target, region: Region | None) -> str:
        errors = self._errors.get(target.path, {})
        if region is not None:
            return shown_lines(self._suspects, target, region, errors)
        return shown_definition(self._suspects, target, errors)

    def _failure(self) -> list[str]:
        """Return the failing tests and what they say."""
        errors = shown_errors(self._before.output, _ERROR_CHARS)
        said = f"Failing test output:\n```\n{errors}\n```"
        tests = self._tests(_FAILING_CHARS)
        return [tests, said] if tests else [self._output]

    def _tests(self, limit: int) -> str:
        return shown_tests(self._sources.tests, self._before.failed, self._suspects.lines, limit)

    def _plain_question(self) -> str:
        tests = shown_texts(self._sources.other_tests, self._suspects.lines, _TESTS_CHARS)
        parts = [tests] if tests else []
        return self._parts(self._code(self._suspects), *parts, self._output, _read("search"))

    def _code(self, suspects: Suspects) -> str:
        limit = _CODE_CHARS if self.whole or suspects is self._suspects else _AROUND_CHARS
        return shown_code(suspects, self._sources.others, limit)

    def _parts(self, *parts: str) -> str:
        return "\n\n".join([self._report, *parts])


def _about(ask: Ask, target: Target) -> str:
    return _read(ask).replace("{path}", target.path).replace("{name}", target.name)


def _read(name: str) -> str:
    path = files("turnout.agent.repair").joinpath("prompts", f"{name}.md")
    return path.read_text("utf-8").strip()
