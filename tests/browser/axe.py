"""Whether people who see, hear or move otherwise can use a page, as far as axe-core can tell."""

import asyncio
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from playwright.async_api import Page

__all__ = ["CONTRAST", "SEEN", "WCAG", "violations"]

_PACKAGE: Final = ("package.json", "package-lock.json")
_INSTALL: Final = ("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
_SECONDS: Final = 60.0
WCAG: Final = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
"""The rules of WCAG 2.2 at level AA, and what axe-core adds of its own."""
CONTRAST: Final = ("wcag141", "wcag143")
"""The rules whose answers differ from theme to theme."""
SEEN: Final = (*CONTRAST, "wcag211", "wcag22aa")
"""The rules whose answers differ from theme to theme, or from width to width."""
_RUN: Final = """
async (tags) => {
  const options = {runOnly: {type: 'tag', values: tags}, resultTypes: ['violations'],
    elementRef: false, pingWaitTime: 1};
  const found = await axe.run(document, options);
  return found.violations.flatMap(rule => rule.nodes.map(
    node => `${rule.impact} ${rule.id}: ${node.target.join(' ')}: `
      + node.failureSummary.replaceAll('\\n', ' ')));
}
"""


async def violations(page: Page, tags: tuple[str, ...] = WCAG) -> list[str]:
    """Return what breaks the rules with these tags, one sentence each.

    The library comes in through the debugger, as the page's own rules let no script in.
    """
    if not await page.evaluate("typeof axe === 'object'"):
        await page.evaluate(await asyncio.to_thread(_library))
    return await page.evaluate(_RUN, list(tags))


@cache
def _library() -> str:
    """Return the library as npm hands it out, by the hash that is pinned."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    with TemporaryDirectory(prefix="turnout-axe-") as folder:
        for name in _PACKAGE:
            shutil.copy(Path(__file__).parent / name, folder)
        done = subprocess.run(
            _INSTALL, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        if done.returncode != 0:
            pytest.skip(f"npm could not install axe-core: {done.stderr[-300:]}")
        return (Path(folder) / "node_modules/axe-core/axe.min.js").read_text()
