"""The recipe of the gateway's image agrees with the project."""

import re
import tomllib

from tests.house.sources import ROOT

RECIPE = (ROOT / "deploy" / "gateway" / "Containerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_every_extra_that_is_installed_exists() -> None:
    """A misspelt one would be left out with a warning that nobody reads."""
    (named,) = re.findall(r"'/src\[([a-z,]+)\]'", RECIPE)
    assert set(named.split(",")) <= set(PROJECT["optional-dependencies"])


def test_what_is_copied_is_all_that_a_build_needs() -> None:
    """The files that the project's own metadata names, and its sources."""
    copied = {
        name
        for line in re.findall(r"^COPY (?!--)(.+) \S+$", RECIPE, re.MULTILINE)
        for name in line.split()
    }
    assert copied == {"pyproject.toml", PROJECT["readme"], *PROJECT["license-files"], "src"}
    ignored = (ROOT / "deploy" / "gateway" / "Containerfile.dockerignore").read_text()
    assert {line[1:] for line in ignored.splitlines() if line.startswith("!")} == copied


def test_it_runs_as_a_user_without_rights() -> None:
    """Whose only folder is the state."""
    assert re.search(r"^USER 10001$", RECIPE, re.MULTILINE)
    assert "--uid 10001" in RECIPE
    assert "TURNOUT_HOME=/var/lib/turnout" in RECIPE
    assert "VOLUME /var/lib/turnout" in RECIPE
