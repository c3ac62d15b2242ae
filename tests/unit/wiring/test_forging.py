"""Forges as the service is set up with them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.samples import NOON

from turnout.core.govern.keys import KeyEntry, KeyLimits, KeyRecord
from turnout.errors import ConfigError
from turnout.settings import Settings, load_settings
from turnout.store.database import open_database
from turnout.store.keys import KeysStore
from turnout.testing.forges import ScriptedForge, running_forge
from turnout.testing.model_server import ScriptedModelServer
from turnout.wiring.serving.forging import check_forges
from turnout.wiring.serving.outlets import ForgeSeen, examine_forges
from turnout.wiring.serving.service import Served, open_serving
from turnout.wiring.state import database_of

TOKEN = "tok-4f1e9d"


def configured(
    folder: Path,
    api: str = "https://forge.example.org",
    name: str = "shop",
    model: str = "http://127.0.0.1:9/v1",
) -> Settings:
    """Return settings with one forge, one of whose repositories has this name here."""
    (folder / "turnout.toml").write_text(
        f"""
        [service.repositories]
        shop = "/srv/git/shop"

        [service.forges.hub]
        kind = "gitlab"
        api = "{api}"
        secret_env = "HUB_SECRET"
        token_env = "HUB_TOKEN"
        key = "hub"
        repositories = {{ "acme/shop" = "{name}" }}
        """
    )
    environment = {
        "HOME": str(folder),
        "TURNOUT_HOME": str(folder / "home"),
        "LLM_BASE_URL": model,
        "LLM_MODEL": "m",
    }
    return load_settings(directory=folder, environment=environment)


async def keep_key(settings: Settings, **changed: Any) -> None:
    """Make the key that the forge's runs are charged to."""
    async with open_database(database_of(settings)) as database:
        record = KeyRecord("hub", "web", (), KeyLimits(), NOON, "", role="member")
        await KeysStore(database).add(KeyEntry("digest", replace(record, **changed)))


def test_a_forge_is_of_repositories_that_the_service_knows(tmp_path: Path) -> None:
    """A name that is none is found before anything is served."""
    check_forges(configured(tmp_path))
    with pytest.raises(ConfigError, match=r"service\.forges\.hub\.repositories.*'acme/shop'"):
        check_forges(configured(tmp_path, name="shpo"))


async def test_a_forge_that_answers_is_seen(tmp_path: Path, monkeypatch) -> None:
    """And so is what keeps another one from being of use."""
    async with running_forge(ScriptedForge("gitlab", TOKEN)) as forge:
        settings = configured(tmp_path, forge.api)
        (unset,) = await examine_forges(settings)
        assert (unset.ok, unset.detail.split()[0]) == (False, "HUB_SECRET")
        monkeypatch.setenv("HUB_SECRET", "s3cret")
        monkeypatch.setenv("HUB_TOKEN", "another")
        (refused,) = await examine_forges(settings)
        assert refused.detail == "`service.forges.hub.key`: There is no key 'hub'."
        assert not (tmp_path / "home/turnout.db").exists()
        await keep_key(settings)
        (refused,) = await examine_forges(settings)
        assert not refused.ok
        assert "acme/shop: Reading the default branch failed with 401" in refused.detail
        monkeypatch.setenv("HUB_TOKEN", TOKEN)
        assert await examine_forges(settings) == [ForgeSeen("hub", True, "acme/shop can be read")]


@pytest.mark.parametrize(
    ("changed", "said", "mend"),
    [
        (None, "There is no key 'hub'.", "keys create hub --role member"),
        ({"revoked_at": NOON}, "The key 'hub' was revoked.", "keys create NAME --role member"),
        ({"role": "viewer"}, "A key with the role `viewer` may not do this.", "keys update"),
    ],
)
async def test_nothing_is_served_with_a_forge_whose_key_orders_nothing(
    changed: dict[str, Any] | None, said: str, mend: str, tmp_path: Path, monkeypatch
) -> None:
    """Its webhooks would all be refused; `turnout doctor` says the same."""
    monkeypatch.setenv("HUB_SECRET", "s3cret")
    monkeypatch.setenv("HUB_TOKEN", TOKEN)
    async with ScriptedModelServer([], models=["m"]) as model:
        settings = configured(tmp_path, model=model.base_url)
        if changed is not None:
            await keep_key(settings, **changed)
        (seen,) = await examine_forges(settings)
        assert (seen.ok, seen.detail) == (False, f"`service.forges.hub.key`: {said}")
        served = Served("127.0.0.1", 0, roles=frozenset({"api"}))
        with pytest.raises(ConfigError) as refused:
            async with open_serving(settings, served, lambda _: None):
                pytest.fail("It serves.")
        assert (refused.value.message, refused.value.mend) == (seen.detail, seen.mend)
        assert mend in seen.mend
