"""Run the tests of the repository."""

from typing import Final

from turnout.agent.tools.base import Arguments, Parameter, ToolContext, ToolOutput, tool
from turnout.core.runs import TestReport
from turnout.errors import ToolError
from turnout.sandbox.testrun import run_tests

__all__ = ["RunTests", "headline"]

_NAMED = 20


class RunTests:
    """One run of the tests, all or some."""

    spec: Final = tool(
        "run_tests",
        "Run the tests of the repository, all of them or a selection.",
        Parameter(
            "selector",
            "A test file or node id such as `tests/test_app.py::test_name`; leave it out for all.",
            required=False,
        ),
    )
    writes: Final = True

    async def call(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        """Run them; failing tests are a result, not an error of the tool."""
        command = context.brief.test_command
        if command is None:
            raise ToolError("No tests were found in this repository.", mend="Go on without them.")
        report = await run_tests(
            context.sandbox,
            command,
            selector=arguments.text("selector").strip(),
            timeout=context.bounds.test_timeout,
        )
        return ToolOutput(f"{headline(report)}\n{report.output}".rstrip(), log=True)


def headline(report: TestReport) -> str:
    """Return what came out of a test run: the counts, and the names of what failed."""
    if not report.found:
        return "No tests were found."
    if report.timed_out:
        return f"The tests timed out after {report.seconds:.0f} s."
    ended = "a signal" if report.exit_code is None else f"exit {report.exit_code}"
    counts = f"{len(report.passed)} passed, {len(report.failed)} failed ({ended})"
    if not report.failed:
        return counts if report.passed else f"The tests ended with {ended}."
    more = ", ..." if len(report.failed) > _NAMED else ""
    return f"{counts}. Failed: {', '.join(report.failed[:_NAMED])}{more}"
