"""What holds on every page that can be reached, at each width and in each theme."""

import re
from collections.abc import Sequence

import pytest
import pytest_asyncio
from tests.browser.axe import SEEN, violations
from tests.browser.conftest import Visit
from tests.browser.crawl import pages_of
from tests.browser.furnished import Furnished
from tests.browser.hostile import UNSEEN
from tests.browser.real_console import RealConsole
from tests.browser.visitor import PHONE, SCREEN, Visitor

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SECTIONS = {
    "runs": "^runs|^$",
    "policies": "polic(y|ies)(?!=)",
    "models": "^(models|deployment|playground|connections)",
    "keys": "^(new-)?key",
    "usage": "^(usage|events|evaluations)",
}
MANY = 25
"""Kinds of pages that there are at least."""
UNSEEN_TEXT = re.compile(f"[{UNSEEN}]")

_STRUCTURE = """
() => {
  const count = (what) => document.querySelectorAll(what).length;
  const faults = [];
  if (count('h1') !== 1) faults.push(`${count('h1')} h1`);
  if (count('main') !== 1) faults.push(`${count('main')} main`);
  if (!document.documentElement.lang) faults.push('no language');
  const first = document.querySelector('a, button, input, select, textarea, [tabindex="0"]');
  if (!first.matches('a[href="#main"]')) faults.push('the first stop is not the way to the page');
  for (const element of document.querySelectorAll('*'))
    for (const {name} of element.attributes)
      if (name.startsWith('on') || name === 'style') faults.push(`${element.tagName} has ${name}`);
  if (count('script:not([src])')) faults.push('a script within the page');
  return faults;
}
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def pages(console: RealConsole, furnished: Furnished, visit: Visit) -> Sequence[str]:
    """Find out what there is to look at."""
    async with visit("admin") as visitor:
        starts = [f"runs/{name}" for name in furnished.runs]
        return await pages_of(visitor.page.context.request, console.url, *starts)


@pytest.mark.parametrize("section", SECTIONS)
async def test_everybody_can_use_every_page(
    section: str, pages: Sequence[str], visit: Visit
) -> None:
    """Nothing is too wide, hard to see, out of a keyboard's reach, or not what it looks like.

    That goes for 1440 and 390 pixels, light and dark, and hostile text in all that is shown.
    """
    of_section = [path for path in pages if re.search(SECTIONS[section], path)]
    assert of_section, pages
    faults = {}
    async with visit("admin") as visitor:
        for path in of_section:
            await visitor.open(path)
            faults[path] = await looked_at(visitor)
    wrong = {path: each for path, each in faults.items() if each}
    assert wrong == {}, wrong


async def test_no_page_is_forgotten(pages: Sequence[str]) -> None:
    """Each is of a section, and the kinds of all of them are known."""
    assert [path for path in pages if not any(re.search(s, path) for s in SECTIONS.values())] == []
    assert len(pages) >= MANY


async def looked_at(visitor: Visitor) -> list[str]:
    """Return what is wrong with the page that is open."""
    page = visitor.page
    faults = [*await page.evaluate(_STRUCTURE), *await violations(page)]
    faults += [f"{SCREEN} px: {each}" for each in await visitor.overflow()]
    await page.emulate_media(color_scheme="dark")
    await page.set_viewport_size({"width": PHONE, "height": 844})
    faults += [f"{PHONE} px: {each}" for each in await visitor.overflow()]
    faults += [f"{PHONE} px, dark: {each}" for each in await violations(page, SEEN)]
    await page.set_viewport_size({"width": SCREEN, "height": 900})
    await page.emulate_media(color_scheme="light")
    if UNSEEN_TEXT.search(await visitor.text()):
        faults.append("characters that nobody sees")
    return faults
