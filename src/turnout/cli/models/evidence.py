"""`turnout models evidence`: what is known of the models that requests may go to."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from turnout.cli.options import config_option, json_option, read_settings, say_json
from turnout.cli.policy.text import grounds_text
from turnout.cli.terminal import safe
from turnout.core.json import JsonObject
from turnout.core.money import Micros, Price, format_usd
from turnout.gateway.decide.table import Row, build_table
from turnout.settings import Settings
from turnout.wiring.policies import open_explainer

__all__ = ["evidence"]


@click.command("evidence")
@json_option
@config_option
def evidence(*, as_json: bool, config: Path | None) -> int:
    """Say what is known of each deployment, and what that rests on.

    Tool support, price, tool success, first token, and quality by task kind: each with its
    number of observations, its age, and where it is from: live traffic, a probe, the catalog, or an
    evaluation. Decisions go by these; no model is called.
    """
    rows = asyncio.run(_rows(read_settings(config)))
    if as_json:
        say_json({"deployments": [_row_json(row) for row in rows]})
    else:
        click.echo(safe("\n".join(line for row in rows for line in _lines(row))))
    return 0


async def _rows(settings: Settings) -> Sequence[Row]:
    async with open_explainer(settings) as explainer:
        policy = explainer.book.default_first()[0]
        return build_table(explainer.catalog, policy, explainer.evidence).rows


def _lines(row: Row) -> Iterator[str]:
    yield f"{row.id}  {row.tools or 'tool support confirmed'}, {_price(row.price)}"
    common = [grounds for grounds in row.grounds["general"] if grounds.figure != "quality"]
    yield from (f"  {grounds_text(grounds)}" for grounds in common)
    for task, quality in row.quality.items():
        yield f"  {task}: {grounds_text(quality.grounds)}; ranks by {quality.least:.2f}"
    if not common and not row.quality:
        yield "  nothing was measured or stated"


def _price(price: Price | None) -> str:
    if price is None:
        return "price unknown"
    charged, generated = format_usd(Micros(price.input)), format_usd(Micros(price.output))
    return f"{charged} in and {generated} out per million tokens"


def _row_json(row: Row) -> JsonObject:
    common = [grounds for grounds in row.grounds["general"] if grounds.figure != "quality"]
    return {
        "deployment": row.id,
        "model": row.model,
        "tools": row.tools or "confirmed",
        "input_micros_per_million": None if row.price is None else row.price.input,
        "output_micros_per_million": None if row.price is None else row.price.output,
        "evidence": [asdict(grounds) for grounds in common],
        "quality": [
            {"task": task, "least": quality.least, **asdict(quality.grounds)}
            for task, quality in row.quality.items()
        ],
    }
