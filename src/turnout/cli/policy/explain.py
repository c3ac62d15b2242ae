"""`turnout policy explain`: which model a request would get, and why."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Final, get_args

import click

from turnout.cli.options import config_option, json_option, read_settings, say_json
from turnout.cli.policy.files import read_file
from turnout.cli.policy.text import explained_text
from turnout.core.inference import CALL_KIND_HEADER, Objective, StepKind, TaskKind
from turnout.core.json import JsonObject, ascii_json
from turnout.core.policies import Policy
from turnout.errors import GatewayError, UsageError
from turnout.gateway.dialog.conversation import Shape
from turnout.gateway.exchange import Caller, InferenceRequest
from turnout.gateway.policy.explain import Explained
from turnout.gateway.policy.shapes import shape_of
from turnout.gateway.policy.views import RouteOut
from turnout.gateway.wire.shapes import HEARD
from turnout.settings import Settings
from turnout.wiring.policies import open_explainer

__all__ = ["explain"]

_WHOEVER = Caller("explain", admin=True)
"""May look at every policy."""
_NO_REQUEST: Final = (400, 404)
"""It is none, or names a model or a policy that is not there."""


@click.command(
    "explain",
    epilog="\b\nExamples:\n"
    "  turnout policy explain --optimize quality --task coding\n"
    "  turnout policy explain --request body.json --draft policies.toml\n"
    "\b\nExit codes:\n"
    "  0  a deployment may serve the request\n"
    "  1  none may; each is listed with its reason\n"
    "  2  wrong usage, or no request\n"
    "  3  the policy refuses the request",
)
@click.option(
    "--request",
    "request_file",
    type=click.File("rb"),
    metavar="FILE",
    help="Body of a request as it would be sent; -: standard input.",
)
@click.option("--shape", type=click.Choice(get_args(Shape)), help="Of that body; else found out.")
@click.option("--prompt", default="Hello", metavar="TEXT", help="What a request would say.")
@click.option("--model", default="auto", show_default=True, help="What it would ask for.")
@click.option("--optimize", type=click.Choice(get_args(Objective)))
@click.option("--task", type=click.Choice(get_args(TaskKind)))
@click.option("--tool", "tools", multiple=True, metavar="NAME", help="A tool it would declare.")
@click.option("--call-kind", type=click.Choice(get_args(StepKind)), help="The step it is for.")
@click.option("--policy", metavar="NAME", help="The policy it would be under; else the default.")
@click.option(
    "--draft",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Decide under a file that is not applied yet.",
)
@json_option
@config_option
def explain(
    *,
    request_file: BinaryIO | None,
    shape: Shape | None,
    prompt: str,
    model: str,
    optimize: Objective | None,
    task: TaskKind | None,
    tools: Sequence[str],
    call_kind: StepKind | None,
    policy: str | None,
    draft: Path | None,
    as_json: bool,
    config: Path | None,
) -> int:
    """Say which deployments a request would get, best first, and why not the others.

    No model is called. What decides is the policy, the catalog, and the evidence that probes and
    earlier requests have left; whether a deployment is well just now only its gateway knows.
    """
    if request_file is not None:
        raw = request_file.read()
    else:
        routing = {"optimize": optimize, "task": task, "policy": policy}
        raw = _body(prompt, model, {k: v for k, v in routing.items() if v is not None}, tools)
    headers = {} if call_kind is None else {CALL_KIND_HEADER: call_kind}
    settings, drafted = read_settings(config), None
    if draft is not None:
        read = read_file(draft, config)
        settings, drafted = read.settings, read.named(policy)
    try:
        request = HEARD[shape or shape_of(raw, headers)].parse(raw, headers)
        explained = asyncio.run(_explained(settings, request, drafted))
    except GatewayError as error:
        if error.status in _NO_REQUEST:
            raise UsageError(error.message, mend=error.mend) from error
        raise
    if as_json:
        say_json(RouteOut.of(explained.decision).model_dump(mode="json"))
    else:
        click.echo(explained_text(explained))
    return 0 if explained.decision.order else 1


def _body(prompt: str, model: str, routing: JsonObject, tools: Sequence[str]) -> bytes:
    body: dict[str, object] = {
        "model": model,
        "messages": [{"role": "user", "content": prompt}],
        "routing": routing,
    }
    if tools:
        body["tools"] = [{"type": "function", "function": {"name": name}} for name in tools]
    return ascii_json(body).encode()


async def _explained(
    settings: Settings, request: InferenceRequest, draft: Policy | None
) -> Explained:
    async with open_explainer(settings) as explainer:
        return explainer.explain(_WHOEVER, request, draft)
