"""The local models that an evaluation asks for, all of them served by this machine at once."""

import os
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from turnout.errors import ModelUnavailableError
from turnout.gateway.catalog import Catalog
from turnout.localmodel.models import (
    DEFAULT_MODEL,
    KNOWN_MODELS,
    ModelFile,
    PresentModel,
    find_installed,
    find_model,
    models_folder,
)
from turnout.localmodel.serve import LocalServer, default_threads
from turnout.runs.ports import Report
from turnout.settings import Settings
from turnout.wiring.sources import LOCAL_PROVIDER, local_catalog, no_model

__all__ = [
    "LocalModels",
    "Serve",
    "check_room",
    "installed_catalog",
    "local_models",
    "serve_local",
    "usual_concurrency",
]

Serve = Callable[[Path, int], LocalServer]
"""Makes the server of a model file that may use so many threads."""

_NOWHERE: Final = "http://127.0.0.1:1"
_ROOM: Final = 1.3
"""Times the size of its file that a model takes in memory, with what it has read."""


@dataclass(frozen=True, slots=True)
class LocalModels:
    """Settings whose catalog is the local models, and the files that these are."""

    settings: Settings
    files: tuple[ModelFile, ...] = ()
    """Empty where the models are elsewhere."""
    threads: int = 0
    """Of each server."""


def local_models(settings: Settings, pins: Sequence[str | None]) -> tuple[PresentModel, ...]:
    """Return the local models that arms ask for, the strongest first; none where others are set.

    `pins` has the model that each arm is pinned to, None for an arm that is routed: that one may
    use the default model as well. `ModelUnavailableError` where one is not on this machine,
    `UsageError` where there is none of that name.
    """
    if settings.catalog.deployments or settings.endpoint is not None:
        return ()
    folder = models_folder(settings.home)
    default = find_installed(folder)
    if default is None:
        raise no_model()
    wanted = {default.model} if None in pins else set[ModelFile]()
    wanted |= {find_model(pin.rpartition("/")[2]) for pin in pins if pin is not None}
    found = []
    for model in KNOWN_MODELS:
        if model in wanted:
            present = find_installed(folder, [model])
            if present is None:
                raise ModelUnavailableError(
                    f"{model.name} is not on this machine.",
                    mend=f"Fetch it: turnout models pull {model.name}",
                )
            found.append(present)
    return tuple(found)


async def serve_local(
    settings: Settings,
    pins: Sequence[str | None],
    stack: AsyncExitStack,
    report: Report,
    serve: Serve = lambda path, threads: LocalServer(path, threads=threads),
) -> LocalModels:
    """Serve the local models that arms ask for until `stack` ends; `local_models` says which.

    Each server has as many threads as if it were alone: arms take turns, and threads that wait do
    not keep others from working.
    """
    present = local_models(settings, pins)
    if not present:
        return LocalModels(settings)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    check_room([each.model for each in present], memory)
    threads = default_threads()
    catalogs = []
    for each in present:
        report(f"starting the local model {each.model.name}")
        server = await stack.enter_async_context(serve(each.path, threads))
        catalogs.append(_catalog_of(each.model, server.base_url))
    files = tuple(each.model for each in present)
    return LocalModels(replace(settings, catalog=_joined(catalogs)), files, threads)


def installed_catalog(settings: Settings) -> Catalog:
    """Return the catalog of all local models that are here, none of which is served."""
    folder = models_folder(settings.home)
    here = [model for model in KNOWN_MODELS if find_installed(folder, [model])]
    return _joined([_catalog_of(model, _NOWHERE) for model in here])


def usual_concurrency(settings: Settings) -> int:
    """Return how many runs are worked on at once where nobody says.

    A model of this machine answers one call at a time: of two runs one would wait, and the wait
    would count as its own time.
    """
    return 1 if not settings.catalog.deployments and settings.endpoint is None else 2


def _catalog_of(model: ModelFile, base_url: str) -> Catalog:
    # Each server is a provider, whose name does not depend on which others there are.
    size = model.name.rpartition("-")[2]
    provider = LOCAL_PROVIDER if model is DEFAULT_MODEL else f"{LOCAL_PROVIDER}-{size}"
    return local_catalog(model.name, base_url, "absent", provider)


def _joined(catalogs: Sequence[Catalog]) -> Catalog:
    if not catalogs:
        raise no_model()
    providers = {name: each for catalog in catalogs for name, each in catalog.providers.items()}
    deployments = tuple(each for catalog in catalogs for each in catalog.deployments)
    return replace(catalogs[0], providers=providers, deployments=deployments)


def check_room(models: Sequence[ModelFile], memory: int) -> None:
    """Raise `ModelUnavailableError` where so many bytes of memory cannot hold all of them."""
    needed = round(sum(model.size for model in models) * _ROOM)
    if needed > memory:
        names = ", ".join(model.name for model in models)
        raise ModelUnavailableError(
            f"{names} need {needed >> 20:,} MiB of memory together, this machine has "
            f"{memory >> 20:,} MiB.",
            mend="Leave out the arm of one of them, or serve it elsewhere (turnout.toml).",
        )
