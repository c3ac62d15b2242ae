"""Forges as the service is set up with them."""

from pathlib import Path

import pytest

from turnout.errors import ConfigError
from turnout.settings import Settings, load_settings
from turnout.testing.forges import ScriptedForge, running_forge
from turnout.wiring.serving.forging import check_forges
from turnout.wiring.serving.outlets import ForgeSeen, examine_forges

TOKEN = "tok-4f1e9d"


def configured(
    folder: Path, api: str = "https://forge.example.org", name: str = "shop"
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
    return load_settings(directory=folder, environment={"HOME": str(folder)})


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
        assert not refused.ok
        assert "acme/shop: Reading the default branch failed with 401" in refused.detail
        monkeypatch.setenv("HUB_TOKEN", TOKEN)
        assert await examine_forges(settings) == [ForgeSeen("hub", True, "acme/shop can be read")]
