"""Runs in a browser: ordered, watched, decided on, and looked at again."""

import asyncio
import re

import pytest
from playwright.async_api import Browser, Locator, Route, expect
from tests.acceptance.command import FIX, TASK
from tests.browser.conftest import Visit
from tests.browser.ordering import GATED, call, gated_turns, ordered
from tests.browser.real_console import RealConsole
from tests.browser.visitor import PHONE, visiting
from tests.browser.wire import wired

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

WAITS = "Waits for approval"
WORK = 40_000.0
"""Milliseconds that a run may take on a busy machine."""


async def test_somebody_orders_a_run_and_watches_it_finish(
    console: RealConsole, browser: Browser
) -> None:
    """From the sign-in on, without a mouse; the page goes on by itself to the verdict.

    A form that cannot be sent says why beside the field, and keeps what was typed.
    """
    console.spoken.teach(TASK, FIX)
    async with visiting(browser, console.url) as visitor:
        page = visitor.page
        await visitor.open("runs/new")
        await page.get_by_label("Key").press_sequentially(console.keys["operator"])
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", level=1)).to_have_text("New run")
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()
        await page.keyboard.press("Enter")
        await page.keyboard.press("Tab")
        await expect(page.get_by_label("Task", exact=True)).to_be_focused()
        await page.keyboard.type(TASK)
        await page.keyboard.press("Tab")
        await page.keyboard.type("nowhere")
        await page.keyboard.press("Enter")
        place = page.get_by_label("Repository", exact=True)
        await expect(place).to_have_attribute("aria-invalid", "true")
        await expect(place).to_have_accessible_description(re.compile("nowhere"))
        await expect(page.get_by_label("Task", exact=True)).to_have_value(TASK)
        await place.fill("pages")
        await page.keyboard.press("Enter")
        await expect(page).to_have_url(re.compile("/console/runs/run-[0-9a-f]+$"))
        await page.evaluate("globalThis.opened = 1")
        top = page.locator("#top")
        await expect(top.get_by_text("resolved", exact=True)).to_be_visible(timeout=WORK)
        for what in ("Failed before", "Passes after", "Tests untouched"):
            fact = top.locator(".verdict div", has_text=what)
            await expect(fact.get_by_role("definition")).to_have_text("yes")
        await expect(page.get_by_text("as if pages counted from 0.").first).to_be_visible()
        await expect(page.get_by_text("start = (number - 1) * size").first).to_be_visible()
        assert await page.evaluate("globalThis.opened") == 1, "the page was loaded again"
        story = await page.locator("#rows > li .title").all_inner_texts()
        await page.reload()
        assert await page.locator("#rows > li .title").all_inner_texts() == story


async def _on_screen(line: Locator) -> bool:
    """Return whether all of a line is within the width of the window."""
    await line.scroll_into_view_if_needed()
    box, size = await line.bounding_box(), line.page.viewport_size
    assert box is not None
    assert size is not None
    return box["x"] >= 0 and box["x"] + box["width"] <= size["width"]


async def test_a_patch_that_waits_is_approved_by_who_may(
    console: RealConsole, visit: Visit
) -> None:
    """With a comment; who only looks sees that it waits, and then the diff, and can do nothing."""
    name = await ordered(console, GATED, gated_turns("It is new."), until="approval_asked")
    async with visit("viewer") as viewer, visit("operator", width=PHONE) as operator:
        await viewer.open(f"runs/{name}")
        await operator.open(f"runs/{name}")
        await expect(viewer.page.get_by_role("heading", name=WAITS)).to_be_visible()
        assert await viewer.page.get_by_role("button").all_inner_texts() == ["Sign out"]
        page = operator.page
        asked = page.locator("#wait")
        await expect(asked).to_contain_text("gated.txt")
        await expect(asked).to_contain_text("by operator, project shop")
        for line, side in (("−old", "deleted"), ("+new", "added")):
            await expect(asked.locator(f"tr.{side} .line")).to_have_text(line)
            assert await _on_screen(asked.locator(f"tr.{side} .line"))
        await page.get_by_label("Comment").fill("Looks <b>right</b>.")
        await page.get_by_role("button", name="Approve").focus()
        await page.keyboard.press("Enter")
        for who, each in (("approver", page), ("viewer", viewer.page)):
            waits = each.get_by_role("heading", name=WAITS)
            await expect(waits, f"The page of the {who}").to_be_hidden()
            await expect(each.locator("#top").get_by_text("no tests", exact=True)).to_be_visible(
                timeout=WORK
            )
            await expect(each.locator("#diff .line.added")).to_have_text("+new")
            # On a telephone, too, where there is no room for two sides.
            for side in ("added", "deleted"):
                assert await _on_screen(each.locator(f"#diff .line.{side}")), (who, side)
    async with visit("admin") as admin:
        await admin.open("events/changes")
        row = admin.page.get_by_role("row", name="approve_call").filter(has_text=name)
        await expect(row).to_contain_text("operator")


async def test_a_page_is_live_however_late_its_scripts_come(
    console: RealConsole, visit: Visit
) -> None:
    """One script is of no use without the other, and the network brings them in any order."""
    task = f"{GATED}, late scripts"
    name = await ordered(console, task, gated_turns("It is newer."), until="approval_asked")

    async def late(route: Route) -> None:
        await asyncio.sleep(0.5)
        await route.continue_()

    async with visit("viewer") as visitor:
        await visitor.page.route(re.compile("hx-sse"), late)
        await visitor.open(f"runs/{name}")
        await expect(visitor.page.get_by_role("heading", name=WAITS)).to_be_visible()
        await call(console, "POST", f"/runs/{name}/reject", json={"note": "No."})
        await expect(visitor.page.get_by_role("heading", name=WAITS)).to_be_hidden()


async def test_a_page_whose_connection_breaks_misses_nothing(
    console: RealConsole, visit: Visit
) -> None:
    """What happens meanwhile comes once the connection is there again, each of it once."""
    task = f"{GATED}, later"
    name = await ordered(console, task, gated_turns("It is newer."), until="approval_asked")
    async with (
        wired(console.url) as (wire, url),
        visit("viewer", url=url, reconnects=True) as visitor,
    ):
        page = visitor.page
        await visitor.open(f"runs/{name}")
        await expect(page.get_by_role("heading", name=WAITS)).to_be_visible()
        wire.cut()
        await call(console, "POST", f"/runs/{name}/reject", json={"note": "Not like that."})
        await expect(page.locator("#top").get_by_text("no tests", exact=True)).to_be_visible(
            timeout=WORK
        )
        rows = page.locator("#rows > li")
        live = await rows.evaluate_all("all => all.map(each => each.id)")
        assert len(live) == len(set(live))
        await page.reload()
        assert await rows.evaluate_all("all => all.map(each => each.id)") == live
        await expect(page.get_by_text("Not like that.").first).to_be_attached()
