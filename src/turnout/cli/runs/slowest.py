"""`turnout runs slowest`: where the time of a run went."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click

from turnout.cli.options import config_option, json_option, read_settings, say_json
from turnout.cli.runs.reading import read_entries
from turnout.cli.runs.remote import server_option
from turnout.cli.terminal import safe
from turnout.core.ids import RunId
from turnout.core.json import JsonObject
from turnout.runs.observe.slowest import PARTS, Part, RunTime, StepTime, times_of

__all__ = ["slowest", "times_json", "times_text"]

_LEAST: Final = 0.005
"""Share of the time below which a part is not shown."""


@click.command("slowest")
@click.argument("run_id", required=False)
@click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True)
@server_option
@json_option
@config_option
def slowest(
    *, run_id: str | None, limit: int, server: str | None, as_json: bool, config: Path | None
) -> int:
    """Show where the time of a run went, its slowest steps first.

    Of the run and of each step it says how much went to the model, to tools, to checkpoints, to
    waiting for approval, to the workspace and to our own test runs. The rest is the loop itself,
    its record, and the time in which no worker had the run.
    """
    entries = asyncio.run(read_entries(read_settings(config), run_id, server))
    times, name = times_of(entries), entries[0].run_id
    if as_json:
        say_json(times_json(name, times, limit))
    else:
        click.echo(safe(times_text(name, times, limit)))
    return 0


def times_text(run_id: RunId, times: RunTime, limit: int) -> str:
    """Return the times of a run for people, those of its `limit` slowest steps."""
    head = f"{run_id}  {times.seconds:.1f} s: {_shares(times.parts, times.seconds)}"
    shown = times.steps[:limit]
    if not shown:
        return f"{head}\nIt has no steps yet."
    lines = [f"{'step':>4}  {'kind':8}{'seconds':>9}{'of run':>8}  where"]
    lines += [_line(step, times.seconds) for step in shown]
    return "\n".join([head, "", *lines])


def _line(step: StepTime, whole: float) -> str:
    share = step.seconds / whole if whole else 0.0
    where = _shares(step.parts, step.seconds)
    called = ", ".join(_counted(step.tools))
    told = f"{where} ({called})" if called else where
    return f"{step.step:>4}  {step.kind:8}{step.seconds:>9.2f}{share:>8.0%}  {told}"


def _shares(parts: Mapping[Part, float], whole: float) -> str:
    shares = [(part, seconds / whole) for part, seconds in parts.items() if whole]
    shown = [f"{part} {share:.0%}" for part, share in shares if share >= _LEAST]
    return ", ".join(shown) or "no time"


def _counted(names: tuple[str, ...]) -> list[str]:
    return [name if n == 1 else f"{name} x{n}" for name, n in Counter(names).items()]


def times_json(run_id: RunId, times: RunTime, limit: int) -> JsonObject:
    """Return the times of a run for scripts, those of its `limit` slowest steps."""
    return {
        "run_id": run_id,
        "seconds": round(times.seconds, 6),
        "parts": _parts_json(times.parts),
        "steps": [
            {
                "step": step.step,
                "kind": step.kind,
                "seconds": round(step.seconds, 6),
                "parts": _parts_json(step.parts),
                "model": step.model or None,
                "tools": list(step.tools),
            }
            for step in times.steps[:limit]
        ],
    }


def _parts_json(parts: Mapping[Part, float]) -> JsonObject:
    return {part: round(parts.get(part, 0.0), 6) for part in PARTS}
