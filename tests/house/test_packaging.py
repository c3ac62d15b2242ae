"""What is shipped, and what it is made from."""

import re
import tomllib

import turnout
from tests.house.sources import ROOT

PIN = re.compile(r"^([a-z0-9._-]+)==\S+ \\$")


def test_every_requirement_is_pinned_and_hashed() -> None:
    """A requirement file names versions and hashes, and no place to get them from."""
    for name in ("runtime", "dev"):
        lines = (ROOT / "requirements" / f"{name}.txt").read_text().splitlines()
        for line in (line for line in lines if line and not line.startswith("#")):
            assert PIN.match(line) or line.startswith("    --hash=sha256:"), line


def test_what_the_package_needs_is_in_the_requirement_files() -> None:
    """No dependency is installed unpinned by the scripts; those of rented machines never are."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = set(
        re.findall(r"^([a-z0-9._-]+)==", (ROOT / "requirements/dev.txt").read_text(), re.MULTILINE)
    )
    rented = {"e2b", "novita", "withruntime"}
    extras = [v for k, v in project["optional-dependencies"].items() if k not in rented]
    wanted = {*project["dependencies"], *(r for extra in extras for r in extra)}
    names = {re.split(r"[<>=!~\[ ]", r)[0].lower().replace("_", "-") for r in wanted}
    assert names <= pinned


def test_the_version_is_said_once() -> None:
    """The package and its metadata agree."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == turnout.__version__


def test_the_changelog_has_this_version() -> None:
    """Users read what changed in the words they use."""
    assert f"## {turnout.__version__}" in (ROOT / "CHANGELOG.md").read_text()
