"""What runs do, counted by their entries and spans."""

from collections.abc import Sequence
from typing import Final

from turnout.core.clock import Clock
from turnout.core.events import Entry, ResourcesUsed, RunEnded, RunResumed, RunStarted
from turnout.core.observe.metrics import Histogram, Metrics
from turnout.core.observe.spans import Span

__all__ = ["RunMetrics"]

_MICROS: Final = 1_000_000
_COMMITS: Final = tuple(0.0005 * 2**power for power in range(15))
"""Upper bounds from half a millisecond to 8 seconds."""
_MODEL: Final = ("gen_ai_request_model", "gen_ai_provider_name", "gen_ai_response_model")


class RunMetrics:
    """Counts what this process has put on record."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._clock = clock
        self._entries = metrics.counter(
            "turnout_record_entries_total", "Entries committed to records, by type.", ("type",)
        )
        self._commits = metrics.histogram(
            "turnout_record_commit_seconds",
            "Time from an entry's moment until it was durable.",
            bounds=_COMMITS,
        )
        self._segments = metrics.counter(
            "turnout_segments_started_total",
            "Segments of runs that were begun here, by whether the run was new.",
            ("begun",),
        )
        self._ended = metrics.counter(
            "turnout_runs_ended_total", "Runs that have ended here, by outcome.", ("outcome",)
        )
        self._cpu = metrics.counter(
            "turnout_sandbox_cpu_seconds_total", "Processor time of sandboxes, as far as known."
        )
        self._memory = metrics.counter(
            "turnout_sandbox_memory_mib_seconds_total", "Memory of sandboxes, times their age."
        )
        self._cost = metrics.counter(
            "turnout_sandbox_cost_usd_total", "What sandboxes cost at the rates that are set."
        )
        self._histograms = {
            "invoke_agent": (
                metrics.histogram(
                    "gen_ai_invoke_agent_duration_seconds",
                    "Time from a run's start to its end, waiting included.",
                    ("gen_ai_agent_name", "error_type"),
                ),
                ("gen_ai.agent.name", ""),
            ),
            "step": (
                metrics.histogram(
                    "turnout_step_duration_seconds", "Time that steps of runs take.", ("kind",)
                ),
                ("turnout.step.kind",),
            ),
            "chat": (
                metrics.histogram(
                    "gen_ai_client_operation_duration_seconds",
                    "Time from the intent of a model call to its result on record.",
                    ("gen_ai_operation_name", *_MODEL, "error_type"),
                ),
                (
                    "gen_ai.operation.name",
                    "gen_ai.request.model",
                    "gen_ai.provider.name",
                    "gen_ai.response.model",
                    "",
                ),
            ),
            "execute_tool": (
                metrics.histogram(
                    "gen_ai_execute_tool_duration_seconds",
                    "Time that tool calls take.",
                    ("gen_ai_tool_name", "error_type"),
                ),
                ("gen_ai.tool.name", ""),
            ),
            **_plain(metrics),
        }

    def entry(self, entry: Entry) -> None:
        """Count an entry that this process has committed just now."""
        event = entry.event
        self._commits.observe(max(0.0, (self._clock.now() - entry.at).total_seconds()))
        self._entries.add(event.type)
        match event:
            case RunStarted():
                self._segments.add("new")
            case RunResumed():
                self._segments.add("resumed")
            case RunEnded(outcome=outcome):
                self._ended.add(outcome)
            case ResourcesUsed():
                self._used(event)
            case _:
                pass

    def _used(self, used: ResourcesUsed) -> None:
        self._cpu.add(by=used.cpu_seconds or 0.0)
        self._memory.add(by=used.memory_mib_seconds or 0.0)
        self._cost.add(by=(used.cost or 0) / _MICROS)

    def take(self, spans: Sequence[Span]) -> None:
        """Count how long what has ended took."""
        for span in spans:
            known = self._histograms.get(span.name.partition(" ")[0])
            if known is not None:
                histogram, names = known
                histogram.observe(span.seconds, *(_label(span, name) for name in names))


def _plain(metrics: Metrics) -> dict[str, tuple[Histogram, tuple[str, ...]]]:
    """Return histograms of what has no kinds, by the first word of the span's name."""
    told = {
        "checkpoint": "Time that checkpoints of workspaces take.",
        "workspace": "Time until the workspace of a run is ready.",
        "tests": "Time that our own test runs take.",
        "approval": "Time that tool calls wait for a person.",
    }
    return {
        what: (metrics.histogram(f"turnout_{what}_duration_seconds", help_), ())
        for what, help_ in told.items()
    }


def _label(span: Span, name: str) -> str:
    """Return the value of an attribute; without a name the kind of error."""
    value = span.attributes.get(name, "") if name else span.error
    return value if isinstance(value, str) else str(value)
