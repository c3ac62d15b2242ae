"""Documentation that fails the build when it is wrong."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.house.sources import ROOT, sources

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SHIPPED = sorted((ROOT / "deploy").rglob("*.md"))
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def turnout(*argv: str) -> subprocess.CompletedProcess[str]:
    """Run the command the way a user does, piped."""
    return subprocess.run(
        [sys.executable, "-m", "turnout", *argv],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("page", [*PAGES, *SHIPPED], ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    """A link within the checkout names a file that exists."""
    links = [link for link in LINK.findall(page.read_text()) if "://" not in link]
    assert not [link for link in links if not (page.parent / link).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_toml_example_parses(page: Path) -> None:
    """An example that is copied works."""
    for language, text in BLOCK.findall(page.read_text()):
        if language == "toml":
            tomllib.loads(text)


def test_every_page_can_be_reached_from_the_readme() -> None:
    """No page is an island."""
    seen, queue = set(), [ROOT / "README.md"]
    while queue:
        page = queue.pop()
        seen.add(page)
        for link in LINK.findall(page.read_text()):
            target = (page.parent / link).resolve()
            if target.suffix == ".md" and target.exists() and target not in seen:
                queue.append(target)
    assert {p for p in PAGES if "docs" in p.parts} <= seen


def test_the_command_reference_is_what_help_prints() -> None:
    """`docs/reference/cli.md` is made by `python -m tests.house.reference`."""
    made = subprocess.run(
        [sys.executable, "-m", "tests.house.reference"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
        check=True,
    ).stdout
    assert (ROOT / "docs/reference/cli.md").read_text() == made


def test_every_option_that_a_page_names_exists() -> None:
    """Long options in the text of the documentation are options of some command."""
    known = set(re.findall(r"--[a-z][a-z-]+", (ROOT / "docs/reference/cli.md").read_text()))
    named = set()
    for page in PAGES:
        if page.name in {"CONTRIBUTING.md", "CHANGELOG.md"}:
            continue
        for line in page.read_text().splitlines():
            if "turnout " in line or "`--" in line:
                named |= set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", line))
    assert named - known <= {"--index", "--quick", "--json"}


def test_every_setting_is_documented() -> None:
    """Each key that a table of `turnout.toml` takes, and each variable read, has its line."""
    page = (ROOT / "docs/reference/settings.md").read_text()
    keys: set[str] = set()
    for source in sources():
        for node in source.classes():
            if any(ast.unparse(base) == "Table" for base in node.bases):
                keys |= {n.target.id for n in node.body if isinstance(n, ast.AnnAssign)}
    text = (ROOT / "src/turnout/settings/environment.py").read_text()
    variables = set(re.findall(r"\"((?:LLM|TURNOUT|NO)_[A-Z_]+)\"", text))
    assert len(keys) > 30
    assert variables
    assert not {name for name in keys | variables if not re.search(rf"\b{name}\b", page)}


def test_an_unknown_command_is_a_usage_error() -> None:
    """Help can be trusted to name every command."""
    assert turnout("frobnicate").returncode == 2
