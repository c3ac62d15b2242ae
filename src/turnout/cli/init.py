"""`turnout init`: writes a commented turnout.toml for the endpoints that it finds."""

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Final

import click

from turnout.agent.tools.surfaces import SURFACES
from turnout.cli.options import json_option, say_json
from turnout.errors import UsageError
from turnout.gateway.config.prices import known_price
from turnout.gateway.dialog.conversation import Shape
from turnout.settings import (
    CONFIG_NAME,
    Endpoint,
    KnownKey,
    endpoint_present,
    keys_present,
    load_settings,
)
from turnout.wiring.rooms import list_models

__all__ = ["Found", "command", "render"]

_LOCAL_SERVERS: Final = (
    ("llamacpp", "http://127.0.0.1:8080/v1"),
    ("ollama", "http://127.0.0.1:11434/v1"),
    ("vllm", "http://127.0.0.1:8000/v1"),
)
"""Servers on their usual ports."""

_SECONDS: Final = 1.0
_MOST_MODELS: Final = 8
_PLAIN: Final = re.compile(r"[\w./:@+-]{1,200}")
"""A model's name that may go into the file; servers name their models as they like."""


@dataclass(frozen=True, slots=True)
class Found:
    """A provider for the file."""

    name: str
    base_url: str
    models: tuple[str, ...]
    """Empty where the user has to choose."""
    key_variable: str | None = None
    free: bool = False
    """A model server of this machine; an address alone may be a proxy to a paid one."""
    why: str = ""
    """How it was found, for people."""
    shape: Shape = "chat"
    """The API that it speaks."""


@click.command(
    "init",
    epilog="\b\nExamples:\n  turnout init\n  turnout init --output team/turnout.toml --force",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    default=CONFIG_NAME,
    show_default=True,
    metavar="FILE",
    help="Where to write it.",
)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@json_option
def command(*, output: Path, force: bool, as_json: bool) -> int:
    """Write a commented turnout.toml.

    Looks for LLM_BASE_URL, for the usual provider keys (by name only) and for llama.cpp, Ollama
    and vLLM on their usual ports of this machine.
    """
    if output.exists() and not force:
        raise UsageError(
            f"{output} is there already.", mend="Use --force to replace it, or --output FILE."
        )
    found = asyncio.run(_look())
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(render(found), encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{output} cannot be written: {error.strerror}.",
            mend="Name a file in a folder that you may write to with --output.",
        ) from error
    load_settings(config=output.absolute())
    if as_json:
        say_json({"file": str(output), "found": [f.name for f in found]})
        return 0
    for one in found:
        click.echo(f"found {one.name}: {one.why}")
    if not found:
        click.echo("Found no endpoint; the file shows how to name one.")
    click.echo(f"Wrote {output}. Next: turnout doctor")
    return 0


def render(found: Sequence[Found]) -> str:
    """Return the text of a turnout.toml that names these providers."""
    template = Path(__file__).with_name("turnout.toml.template").read_text(encoding="utf-8")
    allow = ", ".join(_quoted(spec.name) for spec in SURFACES["guide"].specs)
    models = "".join(_provider(one) for one in found) or _EXAMPLE
    return Template(template).substitute(
        models=models, pool=_pool(found), allow=allow, unpriced=_unpriced(found)
    )


_EXAMPLE: Final = """
# [providers.mine]
# base_url = "http://127.0.0.1:8000/v1"
# api_key_env = "MY_API_KEY"
#
# [[deployments]]
# model = "model-id"
# provider = "mine"
"""


def _provider(found: Found) -> str:
    lines = ["", f"# {found.why}", f"[providers.{found.name}]"]
    lines.append(f"base_url = {_quoted(found.base_url)}")
    if found.shape != "chat":
        lines.append(f"shape = {_quoted(found.shape)}")
    if found.key_variable:
        lines.append(f"api_key_env = {_quoted(found.key_variable)}")
    for model in found.models:
        lines += ["", "[[deployments]]", f"model = {_quoted(model)}"]
        lines.append(f"provider = {_quoted(found.name)}")
        if found.free:
            lines.append('price = { input_usd = "0", output_usd = "0" }')
    if not found.models:
        lines += ["", "# [[deployments]]", '# model = "model-id"']
        lines.append(f"# provider = {_quoted(found.name)}")
    return "\n".join([*lines, ""])


def _pool(found: Sequence[Found]) -> str:
    models = list(dict.fromkeys(model for one in found for model in one.models))
    note = "  # the models that may serve; each must be able to call tools"
    if not models:
        return f'# pool = ["model-id"]{note}'
    return f"pool = [{', '.join(map(_quoted, models))}]{note}"


def _unpriced(found: Sequence[Found]) -> str:
    """Return the line without which a cap on spend would shut models of unknown price out."""
    dark = [
        model
        for one in found
        for model in one.models
        if not one.free and known_price(one.base_url, model) is None
    ]
    if not dark:
        return "# allow_unpriced = true  # let models of unknown price serve; the cap misses them"
    return (
        f"# The price of {', '.join(dark)} is unknown: max_spend_usd does not count such calls.\n"
        "# To have them counted, state a `price` under [[deployments]] and remove this line.\n"
        "allow_unpriced = true"
    )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


async def _look() -> list[Found]:
    endpoint = endpoint_present()
    servers = await asyncio.gather(*(_server(name, url) for name, url in _LOCAL_SERVERS))
    found = [] if endpoint is None else [await _endpoint(endpoint)]
    found += [_key(key) for key in keys_present()]
    taken = {one.base_url for one in found}
    return found + [s for s in servers if s is not None and s.base_url not in taken]


async def _endpoint(endpoint: Endpoint) -> Found:
    models: tuple[str, ...] = (endpoint.model,) if endpoint.model else ()
    if not models:
        listed = await _names(endpoint)
        models = listed if len(listed) == 1 or endpoint.local else ()
    key = "LLM_API_KEY" if endpoint.api_key else None
    return Found(
        "endpoint", endpoint.base_url, models, key, why="LLM_BASE_URL is set", shape=endpoint.shape
    )


def _key(key: KnownKey) -> Found:
    why = f"{key.variable} is set; check the provider's list of models"
    return Found(key.provider, key.base_url, key.models, key.variable, why=why, shape=key.shape)


async def _server(name: str, base_url: str) -> Found | None:
    models = await _names(Endpoint(base_url))
    return (
        Found(name, base_url, models, free=True, why=f"answers at {base_url}") if models else None
    )


async def _names(endpoint: Endpoint) -> tuple[str, ...]:
    listed = await list_models(endpoint, seconds=_SECONDS)
    return tuple(name for name in listed if _PLAIN.fullmatch(name))[:_MOST_MODELS]
