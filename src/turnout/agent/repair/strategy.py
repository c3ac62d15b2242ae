"""Repair by whole-definition replacement, for models too small to drive a loop."""

from collections.abc import AsyncIterator
from dataclasses import replace

from turnout.agent.base import AgentConfig, Brief, ModelClient
from turnout.agent.loop.rules import call_failure
from turnout.agent.repair.attempt import Attempt, Kit
from turnout.agent.repair.grafting.graft import Candidate
from turnout.agent.repair.judge import Judge
from turnout.agent.repair.ladder import Ladder
from turnout.agent.repair.localise import Suspects, localise
from turnout.agent.repair.prompting import Prompter
from turnout.agent.repair.reading import Sources, read_sources
from turnout.core.clock import Clock
from turnout.core.events import Event, LoopEnded, PlanMade
from turnout.core.runs import TestReport
from turnout.sandbox.base import RunTests, Sandbox
from turnout.sandbox.testrun import run_tests

__all__ = ["RepairStrategy"]

_MIN_TOKENS = 600
_SHOWN = 6
_CHARS_PER_TOKEN = 3
_REFUSED_PROMPT = frozenset({400, 413})
"""Statuses that say that this prompt, such as one too long, was not to be had; others may be."""


class RepairStrategy:
    """Shows the model the failing tests and the suspected code, and lets the tests judge.

    Every candidate is drawn in a new conversation; the first with which the whole suite passes
    stays in the workspace, every other is taken back.
    """

    def __init__(
        self,
        client: ModelClient,
        sandbox: Sandbox,
        config: AgentConfig,
        clock: Clock,
        *,
        run_tests: RunTests = run_tests,
    ) -> None:
        self._client = client
        self._sandbox = sandbox
        self._config = config
        self._clock = clock
        self._run_tests = run_tests

    async def run(self, brief: Brief) -> AsyncIterator[Event]:
        """Work, yielding each event before going on; the last one is `LoopEnded`."""
        report, command = brief.tests_before, brief.test_command
        if report is None or command is None or not report.found or report.ok:
            yield _needs_a_failing_test()
            return
        sources = await read_sources(self._sandbox, brief, report)
        suspects = localise(sources, brief.prompt, report)
        samples = min(self._config.repair_samples, self._config.max_steps)
        if not sources.modules and not sources.others:
            yield _no_source()
            return
        yield PlanMade(_plan(suspects, sources, report, samples))
        judge = Judge(self._run_tests, self._sandbox, command, report, self._config.test_timeout)
        kit = self._kit(brief, report, sources, suspects, judge)
        tried: set[bytes] = set()
        steps = Ladder(samples, suspects.targets)
        step, rung, refused = brief.first_step, steps.next(unchanged=False), 0
        while rung is not None:
            attempt = Attempt(kit, step, rung, tried)
            async for event in attempt.events():
                yield event
            if attempt.failure is not None:
                refused += 1
                if attempt.failure.status not in _REFUSED_PROMPT or refused == samples:
                    yield call_failure(attempt.failure)
                    return
            if attempt.stuck:
                yield LoopEnded("failed", attempt.stuck)
                return
            if attempt.solved is not None:
                yield _solved(step - brief.first_step + 1, attempt.solved)
                return
            step, rung = step + 1, steps.next(unchanged=attempt.unchanged)
        yield _exhausted(samples)

    def _kit(
        self,
        brief: Brief,
        report: TestReport,
        sources: Sources,
        suspects: Suspects,
        judge: Judge,
    ) -> Kit:
        prompter = Prompter(brief.prompt, sources, suspects, report)
        tokens = max(_MIN_TOKENS, suspects.longest // _CHARS_PER_TOKEN)
        return Kit(
            brief.run_id,
            self._client,
            self._sandbox,
            _routed(self._config, brief),
            self._clock,
            prompter,
            suspects,
            sources.others,
            judge,
            min(tokens, self._config.steps["act"].max_tokens),
        )


def _routed(config: AgentConfig, brief: Brief) -> AgentConfig:
    """Return the configuration with the objective that this attempt is routed for."""
    if brief.objective is None:
        return config
    act = replace(config.steps["act"], objective=brief.objective)
    return replace(config, steps={**config.steps, "act": act})


def _plan(suspects: Suspects, sources: Sources, report: TestReport, samples: int) -> str:
    failing = len(report.failed)
    tests = f"{failing} failing tests" if failing > 1 else "the failing test"
    lines = [f"Make {tests} pass by replacing whole definitions, most suspected first:"]
    for module in suspects.modules:
        names = ", ".join(suspects.of(module)[:_SHOWN])
        lines += [f"- {module.path}: {names}"] if names else []
    lines += [f"- {path}" for path in sources.others]
    lines.append(
        f"Up to {samples} candidates; each is judged by the failing tests, then by the whole suite."
    )
    return "\n".join(lines)


def _needs_a_failing_test() -> LoopEnded:
    return LoopEnded(
        "failed",
        "No test fails at the base commit, and this model is used for repair only: add a test "
        "that fails, or give a stronger model.",
    )


def _no_source() -> LoopEnded:
    return LoopEnded(
        "failed",
        "The failing tests lead to no source file that could be read: give a stronger model.",
    )


def _solved(step: int, candidate: Candidate) -> LoopEnded:
    names = ", ".join(f"{each.name or 'text'} in {each.path}" for each in candidate.changed)
    return LoopEnded("answered", f"All tests pass with candidate {step}: {names} replaced.")


def _exhausted(samples: int) -> LoopEnded:
    return LoopEnded(
        "step_limit",
        f"None of {samples} candidates made the tests pass; nothing was changed. "
        "Raise `repair_samples`, or give a stronger model.",
    )
