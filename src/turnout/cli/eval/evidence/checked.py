"""What a check-up has found, for people and for programs."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from turnout.cli.terminal import plural
from turnout.core.json import JsonObject
from turnout.core.money import Price, cost_micros, format_usd
from turnout.evals.checkup.model import Checkup, CodeSeen, Metered, NotesSeen
from turnout.evals.checkup.run import CheckupLimits, Sessions, expected_usage

__all__ = ["checkup_json", "checkup_text", "expected_text"]

_WIDTH = 20


def expected_text(
    wanted: Sessions, models: Sequence[tuple[str, Price | None]], limits: CheckupLimits
) -> str:
    """Return what a check-up will take, before anything is asked."""
    usage = expected_usage(wanted)
    spend = "" if limits.spend is None else f" or {format_usd(limits.spend)}"
    about = f"about {usage.input_tokens:,} tokens in and {usage.output_tokens:,} out"
    sessions = plural(wanted.count, "session")
    lines = [f"{sessions} a model, {about}; at most {limits.tokens:,} tokens{spend} each:"]
    for model, price in models:
        cost = (
            "unknown price" if price is None else f"about {format_usd(cost_micros(usage, price))}"
        )
        lines.append(f"  {model}: {cost}")
    return "\n".join(lines)


def checkup_text(found: Checkup, wanted: Sessions) -> str:
    """Return the table of one model."""
    rows = [
        ("tool calls", _calls(found)),
        ("context", _context(found)),
        ("instructions", _instructions(found.code, len(wanted.exercises))),
        ("code that runs", _code(found.code, len(wanted.exercises))),
    ]
    lines = [f"{found.model}  {_metered(found.metered)}"]
    lines += [f"  {name:{_WIDTH}}{text}" for name, text in rows]
    lines += [f"    {line}" for line in _details(found.code)]
    if found.cut_short:
        lines.append(f"  not everything was tried: {found.cut_short}")
    return "\n".join(lines)


def checkup_json(found: Checkup) -> JsonObject:
    """Return the same as JSON; shares are null where nothing was tried."""
    calls, notes = found.calls, found.notes
    return {
        "model": found.model,
        "strategy": found.strategy,
        "tool_calls": {
            **asdict(calls),
            "sound": calls.sound,
            "rate": calls.sound / calls.tried if calls.tried else None,
        },
        "context": None
        if notes is None
        else {**asdict(notes), "reached": notes.reached, "retained": notes.retained},
        "tasks": [
            {**asdict(each), "kept_to_it": each.kept_to_it, "first_try": each.first_try}
            for each in found.code
        ],
        "resolved": sum(each.grade == "resolved" for each in found.code),
        "first_try": sum(each.first_try for each in found.code),
        "kept_to_it": sum(each.kept_to_it for each in found.code),
        "metered": {
            "calls": found.metered.calls,
            "input_tokens": found.metered.input_tokens,
            "output_tokens": found.metered.output_tokens,
            "cost_micros": found.metered.cost,
            "seconds": found.metered.seconds,
        },
        "cut_short": found.cut_short,
    }


def _calls(found: Checkup) -> str:
    calls = found.calls
    if found.strategy not in (None, "loop"):
        return "none: it cannot call tools, and works by `repair`"
    if not calls.tried:
        return "none"
    wrong = [
        f"{count} {what}"
        for count, what in (
            (calls.unusable, "unusable"),
            (calls.mended, "mended"),
            (calls.nudged, "missing or written as text"),
        )
        if count
    ]
    share = f"{calls.sound} of {calls.tried} well-formed ({calls.sound / calls.tried:.0%})"
    return ", ".join([share, *wrong])


def _context(found: Checkup) -> str:
    notes = found.notes
    if notes is None:
        return "not tried"
    if not notes.reached:
        return f"not reached: {_way(notes)}; {notes.reason}"
    after = f"{plural(notes.steps, 'step')} after it was read"
    condensed = f", condensed {plural(notes.condensed, 'time')}" if notes.condensed else ""
    if notes.retained:
        said = f"remembered {after}"
    elif notes.remembered:
        said = f"looked again, {after}"
    else:
        said = f"forgotten, {after}"
    return f"{said} ({_way(notes)}{condensed})"


def _way(notes: NotesSeen) -> str:
    together = f", up to {notes.at_once} at once" if notes.at_once > 1 else ""
    return f"{notes.read} of {notes.links} notes read{together}"


def _instructions(code: Sequence[CodeSeen], tasks: int) -> str:
    kept = sum(each.kept_to_it for each in code)
    idle = sum(not each.changed for each in code)
    nothing = f", in {idle} nothing was changed" if idle else ""
    return f"{kept} of {len(code) or tasks} tasks touched only what was asked{nothing}"


def _code(code: Sequence[CodeSeen], tasks: int) -> str:
    resolved = [each for each in code if each.grade == "resolved"]
    first = sum(each.first_try for each in resolved)
    later = sum((each.edits or 0) > 1 for each in resolved)
    other = len(resolved) - first - later
    parts = [f"{first} at the first try", f"{later} after corrections"]
    if other:
        parts.append(f"{other} by commands")
    return f"{len(resolved)} of {len(code) or tasks} resolved: {', '.join(parts)}"


def _details(code: Sequence[CodeSeen]) -> Iterator[str]:
    for each in code:
        if each.outside:
            yield f"{each.task}: also changed {', '.join(each.outside)}"
        if each.grade != "resolved":
            yield f"{each.task}: {each.grade}. {each.detail}"


def _metered(metered: Metered) -> str:
    cost = "price unknown" if metered.cost is None else format_usd(metered.cost)
    return (
        f"{plural(metered.calls, 'call')}, {metered.input_tokens:,} tokens in, "
        f"{metered.output_tokens:,} out, {cost}, {metered.seconds:.0f} s"
    )
