"""`turnout models probe`: what models do with tools, and how fast they are."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from turnout.cli.options import config_option, json_option, read_settings, say_json
from turnout.cli.terminal import plural, safe
from turnout.core.json import JsonObject
from turnout.core.money import Micros, usd_to_micros
from turnout.errors import ModelUnavailableError
from turnout.gateway.catalog import Deployment
from turnout.gateway.evidence import Examination, ProbeResult
from turnout.gateway.measure.examine import ExamLimits
from turnout.settings import Settings
from turnout.wiring.evidence.probing import Probed, probe_models

__all__ = ["probe", "probed_json", "probed_text"]


@click.command(
    "probe",
    epilog="\b\nExamples:\n"
    "  turnout models probe\n"
    "  turnout models probe acme/large-3 --max-spend-usd 0.05\n"
    "\b\nExit codes:\n"
    "  0  every deployment was probed\n"
    "  1  some could not be asked\n"
    "  2  wrong usage, or no such deployment\n"
    "  4  there is nothing to probe",
)
@click.argument("deployments", nargs=-1, metavar="[DEPLOYMENT]...")
@click.option(
    "--max-spend-usd",
    default="0.25",
    show_default=True,
    metavar="USD",
    help="What the probe of one deployment may cost where its price is known.",
)
@click.option(
    "--max-seconds",
    type=click.FloatRange(min=1.0),
    default=900.0,
    show_default=True,
    help="What the probe of one deployment may take.",
)
@json_option
@config_option
def probe(
    *,
    deployments: Sequence[str],
    max_spend_usd: str,
    max_seconds: float,
    as_json: bool,
    config: Path | None,
) -> int:
    """Measure deployments with some 28 short requests each, and keep the result as evidence.

    A DEPLOYMENT is named as in the catalog, or by its model; without one, all are probed whose
    key is set. Asked are single and parallel tool calls, the right one of several tools, exact
    arguments, a call after a result, and no call where none is needed; first tokens and speed
    are timed. A gateway that runs goes by the result within seconds.
    """
    settings = read_settings(config)
    limits = ExamLimits(seconds=max_seconds, spend=_spend(max_spend_usd))
    progress = _Progress(shown=sys.stderr.isatty() and not as_json)
    probed = asyncio.run(_run(settings, deployments, limits, progress, as_json=as_json))
    if as_json:
        say_json({"deployments": [probed_json(each) for each in probed]})
    failed = [each for each in probed if isinstance(each.outcome, ModelUnavailableError)]
    return 1 if failed else 0


def probed_text(probed: Probed) -> str:
    """Return what a probe showed, for people."""
    id_, outcome = probed.deployment.id, probed.outcome
    if isinstance(outcome, ModelUnavailableError):
        return f"{id_}: {outcome}"
    lines = [f"{id_}: tool support {outcome.tools}. {outcome.detail}", *_abilities(outcome)]
    if outcome.examined is not None:
        lines += _examined_lines(outcome.examined)
    return "\n".join([lines[0], *(f"  {line}" for line in lines[1:])])


def probed_json(probed: Probed) -> JsonObject:
    """Return the same as JSON."""
    id_, outcome = probed.deployment.id, probed.outcome
    if isinstance(outcome, ModelUnavailableError):
        return {"deployment": id_, "error": outcome.message, "mend": outcome.mend}
    found: dict[str, JsonObject | str | bool | None] = {
        "deployment": id_,
        "at": outcome.at.isoformat(),
        "tools": outcome.tools,
        "detail": outcome.detail,
        "calls_in_text": outcome.calls_in_text,
        "enforces_tool_choice": outcome.enforces_tool_choice,
        "json_schema": outcome.json_schema,
        "examined": None if outcome.examined is None else _examined_json(outcome.examined),
    }
    return found


async def _run(
    settings: Settings,
    names: Sequence[str],
    limits: ExamLimits,
    progress: "_Progress",
    *,
    as_json: bool,
) -> list[Probed]:
    probed = []
    async for each in probe_models(
        settings, names, limits, on_begin=progress.begin, on_answer=progress.answer
    ):
        progress.clear()
        probed.append(each)
        if not as_json:
            click.echo(safe(probed_text(each)))
    return probed


def _abilities(result: ProbeResult) -> list[str]:
    choice = "enforced" if result.enforces_tool_choice else "not enforced"
    schema = "enforced" if result.json_schema else "not enforced"
    return [f"required tool choice {choice}, JSON schema {schema}"]


def _examined_lines(examined: Examination) -> list[str]:
    lines = []
    for check in examined.checks:
        detail = f"  (last: {check.detail})" if check.detail else ""
        lines.append(f"{check.name:<16} {check.passed} of {check.tried}{detail}")
    if examined.tried:
        rate = examined.passed / examined.tried
        lines.append(f"tool success     {rate:.2f} of {plural(examined.tried, 'request')}")
    if examined.ttft_ms_p50 is not None:
        lines.append(
            f"first token      p50 {examined.ttft_ms_p50:.0f} ms, p95 {examined.ttft_ms_p95:.0f} ms"
        )
    if examined.tokens_per_second_p50 is not None:
        lines.append(f"speed            {examined.tokens_per_second_p50:.1f} tokens/s")
    if examined.cut_short:
        lines.append(f"cut short: {examined.cut_short}")
    return lines


def _examined_json(examined: Examination) -> JsonObject:
    return {
        "checks": [
            {"name": c.name, "passed": c.passed, "tried": c.tried, "detail": c.detail}
            for c in examined.checks
        ],
        "passed": examined.passed,
        "samples": examined.tried,
        "tool_success": examined.passed / examined.tried if examined.tried else None,
        "ttft_ms_p50": examined.ttft_ms_p50,
        "ttft_ms_p95": examined.ttft_ms_p95,
        "tokens_per_second_p50": examined.tokens_per_second_p50,
        "timed": examined.timed,
        "cut_short": examined.cut_short or None,
    }


def _spend(text: str) -> Micros:
    try:
        amount = usd_to_micros(text)
    except ValueError:
        raise click.BadParameter(f"{text[:100]!r} is no amount in US dollars.") from None
    if amount <= 0:
        raise click.BadParameter("The amount must be above 0.")
    return amount


class _Progress:
    """One line on standard error that is gone when the work is done."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self._name = ""

    def begin(self, deployment: Deployment) -> None:
        """Show whose turn it is."""
        self._name = deployment.id
        self._show(f"{self._name}: probing …")

    def answer(self, done: int, total: int) -> None:
        """Show how many answers there are."""
        self._show(f"{self._name}: {done} of {total} answers")

    def clear(self) -> None:
        """Leave an empty line."""
        self._show("")

    def _show(self, text: str) -> None:
        if self._shown:
            click.echo(f"\r\x1b[2K{safe(text)}", nl=False, err=True)
