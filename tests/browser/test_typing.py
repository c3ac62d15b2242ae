"""What somebody is writing or looking at stays, however much happens on the page meanwhile."""

import asyncio
import re

import pytest
from playwright.async_api import Page, Request, Route, expect
from tests.browser.conftest import Visit
from tests.browser.ordering import GATED, call, gated_turns, ordered
from tests.browser.real_console import RealConsole

from turnout.testing.turns import Call, Turn

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

WORK = 60_000.0
"""Milliseconds that a run may take on a busy machine."""
TYPED = "What I write slowly, and do not want to lose."
SLOWLY = 0.15
"""Seconds between two characters."""
_AGAIN = "--- a/gated.txt\n+++ b/gated.txt\n@@ -1 +1 @@\n-new\n+newer\n"


def reads(count: int) -> list[Turn]:
    """Return steps that change nothing."""
    return [Turn(calls=(Call("read_file", {"path": "notes.txt"}),)) for _ in range(count)]


async def test_a_comment_is_written_on_while_steps_come_in(
    console: RealConsole, visit: Visit
) -> None:
    """Though somebody else decides on the call, the run goes on, and the next call waits.

    Caret and text stay; what the comment was about is told to wait no more, and whoever wrote it
    decides on the next call in its own place.
    """
    task = f"{GATED}, twice"
    patch, again = (Call("apply_patch", {"diff": diff}) for diff in (_first(), _AGAIN))
    turns = [Turn("Patch it."), Turn(calls=(patch,)), *reads(3), Turn(calls=(again,)), Turn("Ok.")]
    name = await ordered(console, task, turns, until="approval_asked")
    async with visit("operator") as visitor:
        page = visitor.page
        await visitor.open(f"runs/{name}")
        await page.evaluate("globalThis.opened = 1")
        first = page.locator(".ask").first
        note = first.get_by_label("Comment")
        await note.click()
        rows = await page.locator("#rows > li").count()
        typing = asyncio.create_task(_typed(page, TYPED))
        await asyncio.sleep(1)
        await call(console, "POST", f"/runs/{name}/approve", "admin", json={})
        second = page.locator(".ask").nth(1)
        await expect(second.get_by_role("heading", name="Waits for")).to_be_visible(timeout=WORK)
        await typing
        assert await page.locator("#rows > li").count() > rows + 3
        await expect(note).to_be_focused()
        await expect(note).to_have_value(TYPED)
        await expect(first.get_by_role("heading")).to_have_text("It waits no more")
        await expect(first).to_contain_text("Your comment was not sent.")
        await expect(first.get_by_role("button")).to_have_count(0)
        await note.press("Home")
        await page.keyboard.type("Now: ")
        await expect(note).to_have_value(f"Now: {TYPED}")
        await note.fill("")
        await second.get_by_label("Comment").fill("Good.")
        await expect(first).to_be_hidden()
        assert await page.evaluate("globalThis.opened") == 1, "the page was loaded again"
        await second.get_by_role("button", name="Approve").click()
        await expect(page.locator("#top").get_by_text("no tests", exact=True)).to_be_visible(
            timeout=WORK
        )


async def test_a_row_that_is_open_stays_open_and_the_keyboard_where_it_is(
    console: RealConsole, visit: Visit
) -> None:
    """While the row, the buttons of the page and the list of runs are told anew."""
    task, seen = "Take your time, somebody reads along", asyncio.Event()
    turns = [Turn("Plan."), *reads(1), Turn("Slow.", until=seen, calls=reads(1)[0].calls)]
    name = await ordered(console, task, turns, until="tool_call_done")
    async with visit("operator") as visitor:
        page = visitor.page
        await visitor.open(f"runs/{name}")
        under_way = page.locator("#rows > li", has_text="under way").locator("summary")
        await under_way.last.click()
        opened = page.locator("#rows > li:has(details[open])")
        await expect(opened.locator(".detail").first).to_be_visible()
        await page.get_by_text("Task and order").click()
        link = page.get_by_role("link", name="Trajectory").first
        await link.focus()
        seen.set()
        await expect(page.get_by_role("button", name="Retry")).to_be_visible(timeout=WORK)
        await expect(opened.locator(".detail").first).to_be_visible()
        await expect(opened).not_to_contain_text("under way")
        await expect(link).to_be_focused()
        await visitor.open("runs")
        await page.locator(f"#run-{name}").focus()
        later = await ordered(console, "Something else", [Turn("Nothing.")])
        await expect(page.locator(f"#run-{later}")).to_be_visible(timeout=WORK)
        await expect(page.locator(f"#run-{name}")).to_be_focused()


@pytest.mark.parametrize(
    ("path", "label", "changed"),
    [("runs", "Search", "#rows tr"), ("events", "Since", "#events tr")],
)
async def test_a_filter_is_typed_while_the_list_changes(
    path: str, label: str, changed: str, console: RealConsole, visit: Visit
) -> None:
    """It counts once it is sent, and half of it is no mistake that the page talks of."""
    async with visit("operator") as visitor:
        page = visitor.page
        await visitor.open(path)
        field = page.get_by_label(label)
        await field.fill("")
        before = await page.locator(changed).first.get_attribute("id")
        await field.focus()
        typing = asyncio.create_task(_typed(page, TYPED))
        await ordered(console, f"For {path}", [Turn("Nothing.")], until="run_ended")
        newest = page.locator(changed).and_(page.locator("[id]")).first
        await expect(newest).not_to_have_attribute("id", before or "", timeout=WORK)
        await typing
        await expect(field).to_have_value(TYPED)
        await expect(field).to_be_focused()
        await expect(page.locator("#notice")).to_be_empty()


async def test_a_policy_is_written_on_though_the_session_has_ended(
    console: RealConsole, visit: Visit
) -> None:
    """The page says so and stays; signed in again elsewhere, what was written is saved."""
    async with visit("admin") as visitor, visit("admin") as other:
        page = visitor.page
        await visitor.open("policies/_new")
        await page.get_by_label("Name").fill("slow")
        text = page.get_by_label("Policy", exact=True)
        await text.press_sequentially('objective = "cost"\n', delay=50)
        await expect(page.locator("#check").get_by_text("sound")).to_be_visible()
        await expect(text).to_be_focused()
        await page.context.clear_cookies()
        await text.press_sequentially("# one", delay=50)
        notice = page.locator("#notice")
        await expect(notice).to_contain_text("Sign in in another window")
        await text.press_sequentially(", two", delay=50)
        await expect(text).to_have_value('objective = "cost"\n# one, two')
        await expect(text).to_be_focused()
        await other.open("runs")
        await page.context.add_cookies((await other.page.context.storage_state())["cookies"])
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Policy slow")


async def test_a_page_has_one_stream_and_leaves_none_behind(
    console: RealConsole, visit: Visit
) -> None:
    """However long the first answer takes: the page asks again and again for none that came."""
    task = f"{GATED}, slow network"
    name = await ordered(console, task, gated_turns("It is new."), until="approval_asked")
    asked: list[Request] = []
    closed: list[Request] = []

    async def late(route: Route) -> None:
        await asyncio.sleep(12)
        await route.continue_()

    async with visit("viewer", reconnects=True) as visitor:
        page = visitor.page
        streams = re.compile(f"/{name}/live")
        page.on("request", lambda each: asked.append(each) if streams.search(each.url) else None)
        for event in ("requestfailed", "requestfinished"):
            page.on(event, lambda each: closed.append(each) if each in asked else None)
        await page.route(streams, late)
        await visitor.open(f"runs/{name}")
        waits = page.get_by_role("heading", name="Waits for approval")
        await expect(waits).to_be_visible()
        await call(console, "POST", f"/runs/{name}/reject", json={"note": "No."})
        await expect(waits).to_be_hidden(timeout=WORK)
        await expect(page.locator("#top").get_by_text("no tests", exact=True)).to_be_visible(
            timeout=WORK
        )
        assert len(asked) == 1
        await _grown(page, closed, 1)
        waiting = await ordered(console, f"{task}, left", gated_turns("x"), until="approval_asked")
        streams = re.compile(f"/{waiting}/live")
        await visitor.open(f"runs/{waiting}")
        await _grown(page, asked, 2)
        await visitor.open("policies")
        await _grown(page, closed, 2)


async def _typed(page: Page, text: str) -> None:
    for character in text:
        await page.keyboard.type(character)
        await asyncio.sleep(SLOWLY)


async def _grown(page: Page, requests: list[Request], count: int) -> None:
    """Wait until there are so many."""
    async with asyncio.timeout(WORK / 1000):
        while len(requests) < count:
            await page.evaluate("new Promise(done => setTimeout(done, 100))")


def _first() -> str:
    return "--- a/gated.txt\n+++ b/gated.txt\n@@ -1 +1 @@\n-old\n+new\n"
