"""Whoever has a keyboard, a phone, a printer or no liking for what moves gets all of a page."""

from collections.abc import Sequence
from typing import Final

import pytest
import pytest_asyncio
from playwright.async_api import expect
from tests.browser.conftest import Visit
from tests.browser.crawl import pages_of
from tests.browser.furnished import Furnished
from tests.browser.real_console import RealConsole
from tests.browser.scenes import SCENES
from tests.browser.test_every_page import looked_at
from tests.browser.visitor import PHONE, Visitor

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

_WATCH: Final = """
() => {
  const radios = new Set();
  globalThis.stops = [...document.querySelectorAll(
    'a[href], button, input, select, textarea, summary, [tabindex="0"]')].filter(one => {
      if (one.disabled || one.type === 'hidden' || !one.checkVisibility()) return false;
      if (one.type !== 'radio') return true;
      // Of a group one is a stop, and arrows go to the others.
      const first = !radios.has(one.name) && (one.checked
        || !document.querySelector(`input[name="${one.name}"]:checked`));
      if (first) radios.add(one.name);
      return first;
    });
  globalThis.reached = new Map();
  document.addEventListener('focusin', ({target}) => {
    const {outlineStyle, outlineWidth} = getComputedStyle(target);
    const box = target.getBoundingClientRect();
    reached.set(target, {seen: outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2,
      within: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth});
  });
  return stops.length;
}
"""
_MISSED: Final = """
() => stops.filter(one => one.isConnected).map(one => {
  const what = `${one.tagName} ${one.id || one.name || one.textContent.trim().slice(0, 30)}`;
  const found = reached.get(one);
  if (!found) return `${what}: is not reached`;
  if (!found.seen) return `${what}: does not show that it has the focus`;
  return found.within ? '' : `${what}: is out of sight with the focus`;
}).filter(Boolean)
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def pages(console: RealConsole, furnished: Furnished, visit: Visit) -> Sequence[str]:
    """Find out what there is to look at."""
    async with visit("admin") as visitor:
        return await pages_of(visitor.page.context.request, console.url, f"runs/{furnished.fixed}")


async def _missed(visitor: Visitor) -> list[str]:
    """Go through the page that is open with the Tab key alone; return what that does not reach."""
    stops = await visitor.page.evaluate(_WATCH)
    # A field of a date has several stops of its own.
    for _ in range(stops + 12):
        await visitor.page.keyboard.press("Tab")
    return await visitor.page.evaluate(_MISSED)


async def test_a_keyboard_reaches_all_that_can_be_used(pages: Sequence[str], visit: Visit) -> None:
    """On every page, and what has the focus shows it."""
    missed = {}
    async with visit("admin") as visitor:
        for path in pages:
            await visitor.open(path)
            missed[path] = await _missed(visitor)
            if missed[path]:
                # A page that goes on by itself may have changed under the hand.
                await visitor.open(path)
                missed[path] = await _missed(visitor)
    assert {path: each for path, each in missed.items() if each} == {}


async def test_a_stop_that_a_keyboard_misses_is_found(visit: Visit) -> None:
    """Else the test above could not fail."""
    async with visit("admin") as visitor:
        await visitor.open("usage")
        await visitor.page.get_by_label("Until").evaluate("one => one.tabIndex = -1")
        since = visitor.page.get_by_label("Since")
        await since.evaluate("one => one.style.setProperty('outline', 'none')")
        assert await _missed(visitor) == [
            "INPUT f-since: does not show that it has the focus",
            "INPUT f-until: is not reached",
        ]


@pytest.mark.parametrize("scene", SCENES)
async def test_everybody_can_use_what_a_page_becomes(
    scene: str, furnished: Furnished, visit: Visit
) -> None:
    """With forms open or refused, answers come, and nothing to show."""
    async with visit("admin") as visitor:
        await SCENES[scene](visitor, furnished)
        assert await looked_at(visitor) == []


async def test_a_phone_shows_a_diff_line_below_line(furnished: Furnished, visit: Visit) -> None:
    """What went stands above what came in its place, and what stays is there once."""
    async with visit("viewer", width=PHONE) as visitor:
        page = visitor.page
        await visitor.open(f"runs/{furnished.fixed}/diff")
        gone = await page.locator("#diff .line.deleted").bounding_box()
        came = await page.locator("#diff .line.added").bounding_box()
        assert gone is not None
        assert came is not None
        assert gone["y"] + gone["height"] <= came["y"] + 1
        assert gone["x"] == came["x"]
        same = page.locator("#diff .line.same", has_text="if size < 1")
        assert [await one.is_visible() for one in await same.all()] == [True, False]
        await expect(page.get_by_role("link", name="split")).to_be_hidden()


async def test_a_run_is_printed_without_what_only_a_screen_needs(
    furnished: Furnished, visit: Visit
) -> None:
    """Task, verdict, diff and timeline stay; menus, forms and buttons do not."""
    async with visit("operator") as visitor:
        page = visitor.page
        await visitor.open(f"runs/{furnished.fixed}")
        await page.locator("#diff table").wait_for()
        await page.emulate_media(media="print")
        for what in ("h1", ".verdict", "#diff table", "#rows > li >> nth=0"):
            await expect(page.locator(what)).to_be_visible()
        for what in ("nav", "button", "form", "#diff .button"):
            assert await page.locator(what).filter(visible=True).count() == 0, what
        # Paper is white, whatever the screen is.
        await page.emulate_media(media="print", color_scheme="dark")
        card = "getComputedStyle(document.documentElement).getPropertyValue('--card')"
        assert (await page.evaluate(card)).strip() == "#ffffff"


async def test_nothing_moves_for_whoever_wants_it_still(furnished: Furnished, visit: Visit) -> None:
    """The sign of a page that goes on by itself moves for everybody else."""
    moving = "document.getAnimations().length"
    async with visit("viewer") as visitor:
        await visitor.open(f"runs/{furnished.waiting}")
        assert await visitor.page.evaluate(moving) == 0
        await visitor.page.emulate_media(reduced_motion="no-preference")
        assert await visitor.page.evaluate(moving) == 1


async def test_a_review_that_came_to_no_decision_is_not_said_to_block(
    furnished: Furnished, visit: Visit
) -> None:
    """One that decided is."""
    async with visit("viewer") as visitor:
        for run, word in ((furnished.failed, "no decision"), (furnished.reviewed, "blocks")):
            await visitor.open(f"runs/{run}")
            await expect(visitor.page.locator("#result h2 .badge").first).to_have_text(word)
