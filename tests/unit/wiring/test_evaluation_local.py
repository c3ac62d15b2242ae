"""The local models of an evaluation: found, and all of them served at once."""

import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.localmodel.test_serve import SERVER

from turnout.errors import ModelUnavailableError, UsageError
from turnout.gateway.catalog import Catalog, Provider
from turnout.localmodel.models import KNOWN_MODELS, ModelFile, models_folder
from turnout.localmodel.serve import LocalServer, default_threads
from turnout.settings import Settings, load_settings
from turnout.wiring.evaluation.local import (
    check_room,
    installed_catalog,
    local_models,
    serve_local,
    usual_concurrency,
)

LARGE, SMALL = KNOWN_MODELS[:2]


def fetched(home: Path, *models: ModelFile) -> Settings:
    """Return settings of a state folder that holds these models, of zeros."""
    folder = models_folder(home)
    folder.mkdir(parents=True)
    for model in models:
        with (folder / model.file).open("wb") as file:
            file.truncate(model.size)
    return load_settings(environment={"TURNOUT_HOME": str(home)}, directory=home)


def names(settings: Settings, *pins: str | None) -> list[str]:
    """Return the models that arms with these pins are served by."""
    return [each.model.name for each in local_models(settings, pins)]


def test_arms_get_the_models_that_they_name(tmp_path: Path) -> None:
    """One that is routed gets the default one as well; what no arm asks for is not served."""
    settings = fetched(tmp_path, LARGE, SMALL)
    assert names(settings, None) == [LARGE.name]
    assert names(settings, SMALL.name) == [SMALL.name]
    assert names(settings, f"local-0.5b/{SMALL.name}", None) == [LARGE.name, SMALL.name]
    assert [d.id for d in installed_catalog(settings).deployments] == [
        f"local/{LARGE.name}",
        f"local-0.5b/{SMALL.name}",
    ]


def test_a_model_that_is_not_here_is_named_with_how_to_fetch_it(tmp_path: Path) -> None:
    """And one that nobody knows with those that are known; nothing at all is said as ever."""
    settings = fetched(tmp_path / "a", LARGE)
    with pytest.raises(ModelUnavailableError, match=f"{SMALL.name} is not on") as missing:
        local_models(settings, [SMALL.name])
    assert missing.value.mend == f"Fetch it: turnout models pull {SMALL.name}"
    with pytest.raises(UsageError, match="no local model 'gpt'"):
        local_models(settings, ["gpt"])
    with pytest.raises(ModelUnavailableError, match="No model is configured"):
        local_models(fetched(tmp_path / "b"), [None])


def test_models_elsewhere_are_none_of_this_machine(tmp_path: Path) -> None:
    """Nothing is served then, and more runs at once wait for no one server."""
    settings = fetched(tmp_path, LARGE)
    assert usual_concurrency(settings) == 1
    environment = {"TURNOUT_HOME": str(tmp_path), "LLM_BASE_URL": "http://127.0.0.1:1/v1"}
    away = load_settings(environment=environment, directory=tmp_path)
    assert names(away, None, LARGE.name) == []
    assert usual_concurrency(away) == 2


async def test_every_model_has_a_server_of_its_own(tmp_path: Path) -> None:
    """All of them repair, are free, and are gone with the evaluation."""
    settings, said, asked = fetched(tmp_path, LARGE, SMALL), [], []

    def serve(path: Path, threads: int) -> LocalServer:
        asked.append((path.name, threads))
        return LocalServer(path, threads=threads, child=(sys.executable, "-c", SERVER))

    async with AsyncExitStack() as stack:
        local = await serve_local(settings, [None, SMALL.name], stack, said.append, serve)
    threads = default_threads()
    assert asked == [(LARGE.file, threads), (SMALL.file, threads)]
    assert (local.files, local.threads) == ((LARGE, SMALL), threads)
    catalog = local.settings.catalog
    assert [(d.model, d.profile, d.tools) for d in catalog.deployments] == [
        (LARGE.name, "branch", "absent"),
        (SMALL.name, "branch", "absent"),
    ]
    urls = {provider.base_url for provider in catalog.providers.values()}
    assert len(urls) == 2
    assert said == [f"starting the local model {name}" for name in (LARGE.name, SMALL.name)]


def test_models_that_memory_cannot_hold_are_not_begun() -> None:
    """What to do is said, before the machine begins to swap."""
    check_room([LARGE, SMALL], memory=4 << 30)
    with pytest.raises(ModelUnavailableError, match="need 1,994 MiB of memory together") as full:
        check_room([LARGE, SMALL], memory=1 << 30)
    assert "Leave out the arm" in full.value.mend


def test_a_catalog_comes_first(tmp_path: Path) -> None:
    """Who has written one has chosen."""
    settings = fetched(tmp_path, LARGE, SMALL)
    provider = Provider("own", "http://127.0.0.1:1/v1")
    catalog = Catalog({"own": provider}, installed_catalog(settings).deployments)
    assert local_models(replace(settings, catalog=catalog), [None]) == ()
