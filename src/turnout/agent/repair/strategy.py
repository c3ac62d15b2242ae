"""Repair by whole-definition replacement, for models too small to drive a loop."""

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field, replace

from turnout.agent.base import AgentConfig, Brief, ModelClient
from turnout.agent.loop.rules import call_failure, over_caps
from turnout.agent.repair.attempt import Attempt, Kit
from turnout.agent.repair.grafting.graft import Candidate
from turnout.agent.repair.judge import Judge
from turnout.agent.repair.ladder import Ladder, Rung
from turnout.agent.repair.localise import localise
from turnout.agent.repair.pool import Pool
from turnout.agent.repair.prompting import Prompter
from turnout.agent.repair.reading import Sources, read_sources
from turnout.agent.repair.remembered import RememberedClient
from turnout.agent.repair.suspects import Suspects
from turnout.agent.repair.tracing.coverage import trace
from turnout.core.clock import Clock, Deadline
from turnout.core.events import Event, LoopEnded, PlanMade
from turnout.core.money import Micros
from turnout.core.runs import TestReport
from turnout.sandbox.base import RunTests, Sandbox
from turnout.sandbox.testrun import run_tests

__all__ = ["RepairStrategy"]

_MIN_TOKENS = 600
_SHOWN = 6
_CHARS_PER_TOKEN = 3
_ALTERNATIVES = 6
"""Of each token, how many of the likeliest are asked for."""
_SEEDS_APART = 1_000
"""Between the seeds of one attempt and of the next."""

_REFUSED_PROMPT = frozenset({400, 413})
"""Statuses that say that this prompt, such as one too long, was not to be had; others may be."""


class RepairStrategy:
    """Shows the model the failing tests and the suspected code, and lets the tests judge.

    Every candidate is drawn in a new conversation. The first with which the whole suite passes
    stays in the workspace and ends the work; one with which fewer tests fail stays too, and what
    fails then is looked at anew. Every other is taken back.
    """

    def __init__(
        self,
        client: ModelClient,
        sandbox: Sandbox,
        config: AgentConfig,
        clock: Clock,
        *,
        branches: bool = False,
        run_tests: RunTests = run_tests,
    ) -> None:
        """Where the model `branches`, forks of each reply are candidates too."""
        self._client = client
        self._sandbox = sandbox
        self._config = config
        self._clock = clock
        self._branches = branches
        self._run_tests = run_tests

    async def run(self, brief: Brief, record: Iterable[Event] = ()) -> AsyncIterator[Event]:
        """Work, yielding each event before going on; the last one is `LoopEnded`.

        What is on record is no loss, in a workspace at base: its candidates are not asked for
        again, only judged anew.
        """
        self._client = RememberedClient(self._client, record)
        report, command = brief.tests_before, brief.test_command
        if report is None or command is None or not report.found or report.ok:
            yield _needs_a_failing_test()
            return
        samples, most = self._config.repair_samples, self._config.max_seconds
        started, unchanged = self._clock.monotonic() - brief.seconds, False
        deadline = Deadline(self._clock, None if most is None else started + most)
        work = _Work(brief, command, samples, self._config.max_steps, deadline)
        scene = await self._look(work, report)
        if not scene.sources.modules and not scene.sources.others:
            yield _no_source()
            return
        yield PlanMade(_plan(scene, work.samples, branches=self._branches))
        while (rung := scene.next(unchanged=unchanged)) is not None and work.may_go_on:
            end = over_caps(self._config, work.spent, self._clock.monotonic() - started)
            if end is not None:
                yield end
                return
            attempt = Attempt(scene.kit, brief.first_step + work.done, rung, work.tried)
            async for event in attempt.events():
                yield event
            end = work.count(attempt)
            if end is not None:
                yield end
                return
            if attempt.reply is not None:
                unchanged = attempt.unchanged
                scene.pool.add(rung, attempt.reply)
            if attempt.progress is not None:
                work.fewest = len(attempt.progress.failed)
                scene = await self._look(work, attempt.progress)
        yield work.exhausted(len(report.failed))

    async def _look(self, work: "_Work", report: TestReport) -> "_Scene":
        """Find out where the fault may be, given what fails now."""
        brief, config = work.brief, self._config
        longest = work.deadline.within(config.own_test_timeout)
        coverage = await trace(self._sandbox, work.command, report, longest)
        sources = await read_sources(self._sandbox, brief, report, list(coverage.lines))
        suspects = localise(sources, brief.prompt, report, coverage)
        tokens = max(_MIN_TOKENS, suspects.longest // _CHARS_PER_TOKEN)
        prompter = Prompter(brief.prompt, sources, suspects, report)
        kit = Kit(
            brief.run_id,
            self._client,
            self._sandbox,
            _routed(config, brief),
            work.deadline,
            prompter,
            suspects,
            sources.others,
            Judge(
                self._run_tests,
                self._sandbox,
                work.command,
                report,
                config.own_test_timeout,
                work.deadline,
            ),
            min(tokens, config.steps["act"].max_tokens),
            _ALTERNATIVES if self._branches else 0,
        )
        ladder = Ladder(
            work.samples - work.drawn,
            suspects,
            whole=prompter.whole,
            seed=_SEEDS_APART * (brief.attempt - 1),
            greedy=brief.attempt in (1, config.escalate_after + 1),
        )
        return _Scene(report, sources, suspects, kit, ladder)


@dataclass(frozen=True, slots=True)
class _Scene:
    """What fails, and where the fault may be."""

    report: TestReport
    sources: Sources
    suspects: Suspects
    kit: Kit
    ladder: Ladder
    pool: Pool = field(default_factory=Pool)

    def next(self, *, unchanged: bool) -> Rung | None:
        """Take what is tried next, given whether the last whole reply repeated the code."""
        return self.pool.next() or self.ladder.next(unchanged=unchanged) or self.pool.last()


class _Work:
    """How far a run is."""

    def __init__(
        self,
        brief: Brief,
        command: str,
        samples: int,
        steps: int | None,
        deadline: Deadline,
    ) -> None:
        self.brief = brief
        self.command = command
        self.samples = samples if steps is None else min(samples, steps)
        self.deadline = deadline
        self.spent = brief.spent
        self.done = 0
        """Candidates that were asked for."""
        self.drawn = 0
        """Those of them that are whole replies."""
        self._steps = steps
        self.tried: set[bytes] = set()
        self.fewest: int | None = None
        """Tests that still fail with the candidates that stay; None where none does."""
        self._refused = 0

    @property
    def may_go_on(self) -> bool:
        """Whether there may be another step."""
        return self._steps is None or self.done < self._steps

    def count(self, attempt: Attempt) -> LoopEnded | None:
        """Take note of what became of a candidate; return the end where it is one."""
        self.done += 1
        self.drawn += attempt.whole
        self.spent = Micros(self.spent + attempt.cost)
        if attempt.failure is not None:
            self._refused += 1
            if attempt.failure.status not in _REFUSED_PROMPT or self._refused == self.samples:
                return call_failure(attempt.failure)
        if attempt.stuck:
            return LoopEnded("failed", attempt.stuck)
        if attempt.solved is not None:
            return _solved(self.done, attempt.solved)
        return None

    def exhausted(self, failed: int) -> LoopEnded:
        """Return the end of a run that has drawn all its candidates."""
        kept = "nothing was changed"
        if self.fewest is not None:
            kept = f"what stays makes {failed - self.fewest} of {failed} failing tests pass"
        return LoopEnded(
            "step_limit",
            f"None of {self.done} candidates made all tests pass; {kept}. "
            "Raise `repair_samples`, or give a stronger model.",
        )


def _routed(config: AgentConfig, brief: Brief) -> AgentConfig:
    """Return the configuration with the objective that this attempt is routed for."""
    if brief.objective is None:
        return config
    act = replace(config.steps["act"], objective=brief.objective)
    return replace(config, steps={**config.steps, "act": act})


def _plan(scene: _Scene, samples: int, *, branches: bool) -> str:
    what = "replies and other ways to go on with each" if branches else "candidates"
    failing = len(scene.report.failed)
    tests = f"{failing} failing tests" if failing > 1 else "the failing test"
    lines = [f"Make {tests} pass by replacing whole definitions, most suspected first:"]
    for module in scene.suspects.modules:
        names = ", ".join(scene.suspects.of(module)[:_SHOWN])
        lines += [f"- {module.path}: {names}"] if names else []
    lines += [f"- {path}" for path in scene.sources.others]
    lines.append(
        f"Up to {samples} {what}; each is judged by the failing tests, then by the whole suite."
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
