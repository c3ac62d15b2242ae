"""A run as it happens: a live line on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final, NamedTuple, Protocol, TextIO

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from turnout.cli.report import cost_text, report_text, review_text
from turnout.cli.terminal import safe, takes_colour
from turnout.cli.tool_lines import call_text, connection_text, outcome_text
from turnout.core.events import (
    ApprovalAsked,
    ApprovalGiven,
    AttemptChosen,
    AttemptStarted,
    ConnectionsAsked,
    Entry,
    Event,
    HistoryCondensed,
    LoopEnded,
    ModelCallDone,
    ModelCallFailed,
    Notice,
    PatchMade,
    PlanMade,
    PlanUpdated,
    Reviewed,
    RunEnded,
    RunResumed,
    RunStarted,
    TestsRan,
    ToolCallDone,
    ToolCallIntended,
    VerdictGiven,
    WorkspaceReady,
)
from turnout.core.tools import ToolCall, ToolResult
from turnout.runs.summary import Summary

__all__ = ["Line", "LiveProgress", "PlainProgress", "Progress", "Silence", "Story", "progress_on"]

_REFRESH: Final = 4
"""Redraws per second of the live line."""


class Progress(Protocol):
    """Shows a run while it happens."""

    def say(self, text: str) -> None:
        """Show a line that belongs to no entry."""
        ...

    def show(self, entry: Entry) -> None:
        """Show an entry that is on record."""
        ...

    def aside(self) -> AbstractContextManager[None]:
        """Leave the screen to something else for a while."""
        ...

    def close(self) -> None:
        """Leave the screen to what follows."""
        ...


class Silence:
    """Shows nothing."""

    def say(self, text: str) -> None:
        """Ignore it."""

    def show(self, entry: Entry) -> None:
        """Ignore it."""

    def aside(self) -> AbstractContextManager[None]:
        """Do nothing."""
        return nullcontext()

    def close(self) -> None:
        """Do nothing."""


class Line(NamedTuple):
    """A line of a run's story."""

    text: str
    """As it came: hostile, and possibly with line breaks."""
    style: str


class Story:
    """Tells the events of a run in lines, a tool call together with its result."""

    def __init__(self) -> None:
        self._open: list[ToolCall] = []

    @property
    def under_way(self) -> str:
        """The newest tool call that has no result yet; empty where there is none."""
        return call_text(self._open[-1]) if self._open else ""

    def lines(self, event: Event) -> list[Line]:
        """Return what an event adds; most add one line, some none."""
        match event:
            case ToolCallIntended(call=call):
                self._open.append(call)
                return []
            case ToolCallDone(result=result):
                return [self._used(result)]
            case LoopEnded() | RunEnded():
                return self.rest()
            case _:
                text = _line_of(event)
                return [Line(text, _style(event))] if text else []

    def rest(self) -> list[Line]:
        """Return the calls that got no result, and forget them."""
        left = [Line(f"  {call_text(call)} (no result)", "yellow") for call in self._open]
        self._open.clear()
        return left

    def _used(self, result: ToolResult) -> Line:
        unknown = ToolCall(result.call_id, "a tool", "")
        call = next((call for call in self._open if call.id == result.call_id), unknown)
        self._open = [other for other in self._open if other is not call]
        outcome = outcome_text(call, result)
        return Line(f"  {call_text(call)} {outcome}", "red" if result.is_error else "")


class PlainProgress:
    """One line for each thing worth knowing."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._story = Story()

    def say(self, text: str) -> None:
        """Write the line."""
        self._write(safe(text))

    def show(self, entry: Entry) -> None:
        """Write the entry's lines, if it has any."""
        for line in self._story.lines(entry.event):
            self._write(safe(line.text))

    def aside(self) -> AbstractContextManager[None]:
        """Do nothing: every line stands."""
        return nullcontext()

    def close(self) -> None:
        """Do nothing: every line stands."""


class LiveProgress:
    """Lines as they come, above one that tells step, model, cost and time."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._summary = Summary()
        self._story = Story()
        self._start = time.monotonic()
        self._note = "starting"
        self._spinner = Spinner("dots")
        self._live = self._started()

    def say(self, text: str) -> None:
        """Show what is being waited for."""
        self._note = safe(text)
        self._console.print(Text(self._note, style="dim"))

    def show(self, entry: Entry) -> None:
        """Print the entry's lines above and bring the live one up to date."""
        self._summary.add(entry)
        for line in self._story.lines(entry.event):
            self._console.print(Text(safe(line.text), style=line.style))

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Take the live line away until the block ends."""
        self._live.stop()
        try:
            yield
        finally:
            self._live = self._started()

    def close(self) -> None:
        """Take the live line away."""
        self._live.stop()

    def _started(self) -> Live:
        live = Live(
            console=self._console,
            get_renderable=self._status,
            refresh_per_second=_REFRESH,
            transient=True,
        )
        live.start()
        return live

    def _status(self) -> Spinner:
        elapsed = f"{time.monotonic() - self._start:.0f} s"
        self._spinner.update(text=Text(" · ".join([*self._state(), elapsed]), no_wrap=True))
        return self._spinner

    def _state(self) -> list[str]:
        result = self._summary.result
        if result is None:
            return [self._note]
        if result.step is None:
            return [result.run_id, "preparing the workspace"]
        step = result.step
        state = [f"step {step.step} {step.kind}"]
        if result.attempts:
            state.insert(0, f"attempt {result.attempts[-1].started.attempt}")
        if progress := result.progress:
            state.append(f"plan {progress.states.count('done')}/{len(progress.states)}")
        if result.calls:
            state += [safe(result.calls[-1].routing.model), cost_text(result)]
        if under_way := self._story.under_way:
            state.append(safe(under_way))
        return state


def progress_on(stream: TextIO, *, colour: bool) -> Progress:
    """Return the progress that suits a stream: live on a terminal, plain lines elsewhere."""
    if stream.isatty():
        return LiveProgress(
            Console(file=stream, no_color=not takes_colour(stream, allowed=colour), highlight=False)
        )

    def write(line: str) -> None:
        stream.write(f"{line}\n")
        stream.flush()

    return PlainProgress(write)


def _line_of(event: Event) -> str:
    match event:
        case RunStarted(base_commit=commit, strategy=strategy):
            started = f"run started at {commit[:12]}, strategy {strategy}"
            return started if commit else "the run could not begin"
        case RunResumed(segment=segment, worker=worker):
            return f"taken up again by {worker}, segment {segment}"
        case WorkspaceReady(isolation=walls, test_command=command, seconds=seconds):
            tests = f"tests: {command}" if command else "no tests"
            return f"workspace ready in {seconds:.1f} s ({walls}), {tests}"
        case Notice(text=text, level=level):
            return f"{level}: {text}" if level == "warning" else text
        case TestsRan(phase=phase, report=report):
            return f"tests {phase}: {report_text(report)}"
        case PlanMade(text=text):
            return f"plan:\n{text.strip()}"
        case ModelCallDone(step=step, kind=kind, routing=routing, latency_ms=latency):
            ran = "".join(f", ran {tool}" for tool in routing.connection_calls)
            return f"step {step} {kind}: {routing.model}, {latency / 1000:.1f} s{ran}"
        case ModelCallFailed(step=step, kind=kind, error=error):
            return f"step {step} {kind}: no answer: {error}"
        case ConnectionsAsked(connections=connections):
            return "\n".join(map(connection_text, connections))
        case PatchMade(patch=patch):
            return f"patch: {len(patch.files)} changed" if patch else "patch: nothing changed"
        case VerdictGiven(verdict=verdict):
            return f"verdict: {verdict.name}"
        case _:
            return _decision_line(event)


def _decision_line(event: Event) -> str:
    match event:
        case PlanUpdated(states=states):
            at = next((n for n, s in enumerate(states, start=1) if s == "under_way"), len(states))
            return f"plan: item {at} of {len(states)}, {states.count('done')} done"
        case HistoryCondensed(through_step=step):
            return f"the conversation up to step {step} was condensed"
        case AttemptStarted(attempt=number, of=most, objective=objective):
            return f"attempt {number} of at most {most}, for {objective}"
        case AttemptChosen(attempt=number, reason=reason):
            return f"attempt {number} is the result: {reason}"
        case ApprovalAsked(call=call, rule=rule):
            return f"{call_text(call)} waits for approval (rule {rule})"
        case ApprovalGiven(allowed=allowed, by=by, note=note):
            said = f": {note}" if note else ""
            return f"{'allowed' if allowed else 'refused'} by {by}{said}"
        case Reviewed():
            return review_text(event)
        case _:
            return ""


def _style(event: Event) -> str:
    match event:
        case Notice(level="warning") | ModelCallFailed():
            return "yellow"
        case ConnectionsAsked(connections=asked) if not all(each.allowed for each in asked):
            return "yellow"
        case ApprovalGiven(allowed=False) | Reviewed(blocked=True) | Reviewed(decided=False):
            return "yellow"
        case PlanMade() | AttemptStarted():
            return "bold"
        case _:
            return ""
