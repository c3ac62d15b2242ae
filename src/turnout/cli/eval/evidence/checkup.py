"""`turnout eval checkup`: what breaks agents, tried out on models."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from turnout.cli.eval.evidence.checked import checkup_json, checkup_text, expected_text
from turnout.cli.eval.options import FiniteRange, ground_options, say, settings_of, tools_option
from turnout.cli.keys.values import SPEND
from turnout.cli.options import say_json
from turnout.cli.terminal import safe
from turnout.core.json import JsonObject
from turnout.core.money import Micros
from turnout.core.tasks import SurfaceName
from turnout.errors import ModelUnavailableError
from turnout.evals.checkup.model import Checkup
from turnout.evals.checkup.run import CheckupLimits, Sessions, check_up, sessions
from turnout.settings import DriverName, Settings
from turnout.wiring.evaluation.checkup import Examined, models_of, open_checkup

__all__ = ["checkup"]


@dataclass(frozen=True, slots=True)
class _Request:
    """What the command line asks for."""

    settings: Settings
    models: tuple[str, ...]
    wanted: Sessions
    limits: CheckupLimits
    seconds: float
    surface: SurfaceName
    as_json: bool


@click.command(
    "checkup",
    epilog="\b\nExamples:\n"
    "  turnout eval checkup\n"
    "  turnout eval checkup --model qwen3-coder-30b --model gpt-5-mini --max-spend-usd 2\n"
    "\b\nExit codes:\n"
    "  0  every model was tried out, whatever was found\n"
    "  1  some could not be asked, or not everything was tried\n"
    "  2  wrong usage, or no such model\n"
    "  4  the environment is not fit (sandbox, model)",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="ID",
    help="Try this model; may be repeated; by default all whose key is set.",
)
@click.option(
    "--max-spend-usd",
    "spend",
    type=SPEND,
    default="1",
    show_default=True,
    help="What one model may cost, where its price is known; or `none`.",
)
@click.option(
    "--max-tokens",
    type=click.IntRange(min=1),
    default=1_500_000,
    show_default=True,
    metavar="N",
    help="Tokens that one model may use.",
)
@click.option(
    "--seconds",
    type=FiniteRange(min=1),
    default=900.0,
    show_default=True,
    metavar="S",
    help="Wall time of one session.",
)
@tools_option("the models get")
@click.option(
    "--seed", type=int, default=1, show_default=True, help="Of what has to be remembered."
)
@ground_options
def checkup(
    *,
    models: tuple[str, ...],
    spend: Micros | str,
    max_tokens: int,
    seconds: float,
    surface: SurfaceName | None,
    seed: int,
    sandbox: DriverName | None,
    as_json: bool,
    config: Path | None,
) -> int:
    """Try models out on what breaks agents, in seven sessions on tiny repositories.

    Six coding tasks show whether the code they write runs, at the first try or after corrections,
    and whether they leave unrelated files alone. A session of more than 40 steps shows whether
    their tool calls stay well-formed, and whether they know at its end what they read at its start.
    They work as in `turnout run`: the same loop, the same sandboxes. One table a model; what their
    tool calls were like counts as evidence for routing, as in all runs.
    """
    settings = settings_of(config, sandbox)
    limits = CheckupLimits(max_tokens, None if isinstance(spend, str) else spend)
    request = _Request(
        settings,
        models,
        sessions(seed),
        limits,
        seconds,
        surface or settings.surface,
        as_json,
    )
    found = asyncio.run(_run(request))
    if as_json:
        say_json({"models": found})
    return 1 if any("error" in each or each["cut_short"] for each in found) else 0


async def _run(request: _Request) -> Sequence[JsonObject]:
    examined = await models_of(request.settings, request.models)
    say(expected_text(request.wanted, [(e.model, e.price) for e in examined], request.limits))
    found: list[JsonObject] = []
    for each in examined:
        try:
            shown = await _checked(request, each)
        except ModelUnavailableError as error:
            found.append({"model": each.model, "error": error.message, "mend": error.mend})
            say(f"{each.model}: {error}")
            continue
        found.append(checkup_json(shown))
        if not request.as_json:
            click.echo(safe(f"{checkup_text(shown, request.wanted)}\n"))
    return found


async def _checked(request: _Request, examined: Examined) -> Checkup:
    done = 0

    def begin(name: str) -> None:
        nonlocal done
        done += 1
        say(f"[{done}/{request.wanted.count}] {examined.model}: {name} …")

    opening = open_checkup(request.settings, examined.model, request.surface, request.seconds, say)
    async with opening as tools:
        return await check_up(examined.model, request.wanted, tools, request.limits, begin)
