"""The commands that the documentation shows, run as they stand there."""

import re
import shlex
from pathlib import Path

import pytest
from tests.acceptance.command import FIX, Command

from turnout.testing.model_server import ScriptedModelServer
from turnout.testing.repositories import TinyRepository

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
RUN_BY_THEMSELVES = {"./scripts/demo", "."}
"""Commands that set up a machine or a shell: the release check runs them."""


def commands(page: Path) -> list[list[str]]:
    """Return the commands of a page's console blocks, in order."""
    text = "\n".join(BLOCK.findall(page.read_text()))
    return [shlex.split(line[2:]) for line in text.splitlines() if line.startswith("$ ")]


PAGES = [p for p in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]) if commands(p)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
async def test_the_commands_of_a_page_work_in_order(
    turnout: Command, pages: TinyRepository, page: Path
) -> None:
    """Each ends with exit code 0 in a repository with one bug, before a model that fixes it."""
    async with ScriptedModelServer(FIX, models=["m"]) as server:
        command = turnout.using(server.base_url).inside(pages.path)
        for name, *arguments in commands(page):
            if name in RUN_BY_THEMSELVES:
                continue
            assert name == "turnout"
            done = await command(*arguments)
            assert done.code == 0, (arguments, done.err)


def test_every_kind_of_page_shows_commands_that_are_run() -> None:
    """The test above has something to run."""
    assert {"README.md", "first-run.md", "take-the-diff.md"} <= {page.name for page in PAGES}
