"""A run as it happens: a live line on a terminal, plain lines elsewhere."""

import json
import time
from collections.abc import Callable
from typing import Final, Protocol, TextIO

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from turnout.cli.report import cost_text, report_text
from turnout.cli.terminal import safe, takes_colour
from turnout.core.events import (
    Entry,
    Event,
    ModelCallDone,
    ModelCallFailed,
    Notice,
    PatchMade,
    PlanMade,
    RunStarted,
    TestsRan,
    ToolCallIntended,
    VerdictGiven,
    WorkspaceReady,
)
from turnout.core.tools import ToolCall
from turnout.runs.summary import RunResult, advance

__all__ = ["LiveProgress", "PlainProgress", "Progress", "Silence", "line_of", "progress_on"]

_SHOWN_ARGUMENT: Final = 60
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

    def close(self) -> None:
        """Leave the screen to what follows."""
        ...


class Silence:
    """Shows nothing."""

    def say(self, text: str) -> None:
        """Ignore it."""

    def show(self, entry: Entry) -> None:
        """Ignore it."""

    def close(self) -> None:
        """Do nothing."""


class PlainProgress:
    """One line for each thing worth knowing."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write

    def say(self, text: str) -> None:
        """Write the line."""
        self._write(safe(text))

    def show(self, entry: Entry) -> None:
        """Write the entry's line, if it has one."""
        if line := line_of(entry.event):
            self._write(safe(line))

    def close(self) -> None:
        """Do nothing: every line stands."""


class LiveProgress:
    """Lines as they come, above one that tells step, model, cost and time."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._result: RunResult | None = None
        self._start = time.monotonic()
        self._note = "starting"
        self._spinner = Spinner("dots")
        self._live = Live(
            console=console,
            get_renderable=self._status,
            refresh_per_second=_REFRESH,
            transient=True,
        )
        self._live.start()

    def say(self, text: str) -> None:
        """Show what is being waited for."""
        self._note = safe(text)
        self._console.print(Text(self._note, style="dim"))

    def show(self, entry: Entry) -> None:
        """Print the entry's line above and bring the live one up to date."""
        self._result = advance(self._result, entry)
        if line := line_of(entry.event):
            self._console.print(Text(safe(line), style=_style(entry.event)))

    def close(self) -> None:
        """Take the live line away."""
        self._live.stop()

    def _status(self) -> Spinner:
        elapsed = f"{time.monotonic() - self._start:.0f} s"
        self._spinner.update(text=Text(" · ".join([*self._state(), elapsed]), no_wrap=True))
        return self._spinner

    def _state(self) -> list[str]:
        if self._result is None:
            return [self._note]
        if self._result.step is None:
            return [self._result.run_id, "preparing the workspace"]
        step = self._result.step
        models = [safe(call.routing.model) for call in self._result.calls[-1:]]
        return [f"step {step.step} {step.kind}", *models, cost_text(self._result)]


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


def line_of(event: Event) -> str:
    """Return the line of an event; empty where it is not worth one."""
    match event:
        case RunStarted(base_commit=commit, strategy=strategy):
            return f"run started at {commit[:12]}, strategy {strategy}"
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
            return f"step {step} {kind}: {routing.model}, {latency / 1000:.1f} s"
        case ModelCallFailed(step=step, kind=kind, error=error):
            return f"step {step} {kind}: no answer: {error}"
        case ToolCallIntended(call=call):
            return f"  {call.name} {_argument(call)}".rstrip()
        case PatchMade(patch=patch):
            return f"patch: {len(patch.files)} changed" if patch else "patch: nothing changed"
        case VerdictGiven(verdict=verdict):
            return f"verdict: {verdict.name}"
        case _:
            return ""


def _argument(call: ToolCall) -> str:
    """Return the first argument of a call, which tells the most, on one line."""
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError:
        return "(arguments that are no JSON)"
    first = next(iter(arguments.values()), "") if isinstance(arguments, dict) else ""
    text = " ".join(str(first).split())
    return text if len(text) <= _SHOWN_ARGUMENT else f"{text[:_SHOWN_ARGUMENT]}…"


def _style(event: Event) -> str:
    match event:
        case Notice(level="warning") | ModelCallFailed():
            return "yellow"
        case PlanMade():
            return "bold"
        case _:
            return ""
