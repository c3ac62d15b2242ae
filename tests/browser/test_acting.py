"""What is done with a run from its page: stopped, done again, pushed; and what is refused."""

import asyncio
import re

import pytest
from playwright.async_api import Page, expect
from tests.browser.conftest import Visit
from tests.browser.ordering import GATED, gated_turns, ordered
from tests.browser.real_console import RealConsole
from tests.browser.visitor import PHONE

from turnout.testing.turns import Call, Turn

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

WORK = 60_000.0
"""Milliseconds that a run may take on a busy machine."""
_DIFF = "--- a/notes.txt\n+++ b/notes.txt\n@@ -1 +1 @@\n-one\n+two\n"
_PATCHES = (
    Turn("Patch it."),
    Turn(calls=(Call("apply_patch", {"diff": _DIFF}),)),
    Turn("It is two."),
    Turn("It says two now."),
)


async def _sent(page: Page, url: str, **fields: str) -> tuple[int, str]:
    """Send a form that the page that is open does not have; return status and text."""
    # All forms of a session carry the same, and every page has the one that signs out.
    csrf = await page.locator('input[name="csrf"]').first.get_attribute("value")
    form = {"csrf": csrf, **fields}
    answer = await page.context.request.post(url, form=form, headers={"referer": page.url})
    return answer.status, await answer.text()


async def test_a_run_is_cancelled_and_done_again(console: RealConsole, visit: Visit) -> None:
    """It stops after the step under way, which everybody sees; what it was is ordered once more.

    While it is worked on it can be neither done again nor pushed.
    """
    task = "Take your time with the notes"
    seen = asyncio.Event()
    turns = (Turn("Plan.", until=seen), Turn(calls=(Call("read_file", {"path": "notes.txt"}),)))
    name = await ordered(console, task, turns, until="model_call_intended", repo="shared")
    async with visit("viewer") as viewer, visit("operator", width=PHONE) as operator:
        page = operator.page
        await operator.open(f"runs/{name}")
        await expect(page.locator("#top").get_by_text("running", exact=True)).to_be_visible()
        for other in ("Retry", "Push branch"):
            await expect(page.get_by_role("button", name=other)).to_have_count(0)
        await page.get_by_role("link", name="Cancel").click()
        await page.get_by_role("button", name="Cancel the run").click()
        await expect(page.locator("#top").get_by_text("stopping", exact=True)).to_be_visible()
        await expect(page.get_by_text("Cancelled by operator.")).to_be_visible()
        await expect(page.get_by_role("link", name="Cancel")).to_have_count(0)
        for path in ("retry", "publish"):
            place = f"{operator.url}runs/{name}/{path}"
            status, text = await _sent(page, place, publish="branch")
            assert (status, "has not ended" in text) == (409, True), text
            assert f'href="/console/runs/{name}">Back to where you were' in text
        seen.set()
        await viewer.open(f"runs/{name}")
        assert await viewer.page.get_by_role("button").all_inner_texts() == ["Sign out"]
        for each in (page, viewer.page):
            ended = each.locator("#top").get_by_text("cancelled", exact=True).first
            await expect(ended).to_be_visible(timeout=WORK)
        await expect(page.locator("#top")).to_contain_text("Cancelled by operator.")
        await page.get_by_role("button", name="Retry").click()
        await expect(page).to_have_url(re.compile(f"/console/runs/run-(?!{name[4:]})[0-9a-f]+$"))
        await page.get_by_text("Task and order").click()
        await expect(page.get_by_role("link", name=name)).to_be_visible()
        await expect(page.get_by_role("button", name="Retry")).to_be_visible(timeout=WORK)
        await expect(page.get_by_text("Does again")).to_be_visible()
    async with visit("admin") as admin:
        await admin.open("events/changes")
        for action in ("cancel_run", "retry_run"):
            row = admin.page.get_by_role("row", name=action).filter(has_text=name)
            await expect(row).to_contain_text("operator")


async def test_a_run_of_the_list_is_cancelled_there(console: RealConsole, visit: Visit) -> None:
    """One that waits for a person ends at once, and the list says so."""
    task = f"{GATED}, and be stopped"
    name = await ordered(console, task, gated_turns("No."), until="approval_asked")
    async with visit("operator") as visitor:
        page = visitor.page
        await visitor.open("runs?words=be+stopped")
        row = page.locator(f"#row-{name}")
        await expect(row.get_by_text("waits for approval")).to_be_visible()
        cancel = row.get_by_role("link", name=f"Cancel {name}")
        await cancel.click()
        await page.get_by_role("link", name="Let it go on").click()
        await expect(row.get_by_text("waits for approval")).to_be_visible()
        await cancel.click()
        await page.get_by_role("button", name="Cancel the run").click()
        await expect(page).to_have_url(re.compile("/console/runs\\?words=be\\+stopped#row-"))
        await expect(row.get_by_text("cancelled", exact=True)).to_be_visible(timeout=WORK)
        await expect(cancel).to_have_count(0)


async def test_a_diff_is_pushed_as_a_branch(console: RealConsole, visit: Visit) -> None:
    """Where pushing is allowed, and never over a branch that is there; the page tells how far.

    What has failed can be pushed once what was in its way is gone, and nothing is pushed twice.
    """
    task = "Let the shared notes say two"
    name = await ordered(console, task, _PATCHES, until="run_ended", repo="shared")
    branch, shared = f"turnout/{name}", console.shared
    shared.git("branch", branch, "main")
    async with visit("operator") as visitor:
        page, push = visitor.page, visitor.page.get_by_role("button", name="Push branch")
        top = page.locator("#top")
        await visitor.open(f"runs/{name}")
        await expect(top).not_to_contain_text("publication")
        await push.click()
        await expect(top.get_by_text("publication: failed")).to_be_visible(timeout=WORK)
        await expect(top).to_contain_text(f"has a branch {branch} already, with another commit.")
        assert shared.git("rev-parse", branch) == shared.git("rev-parse", "main")
        shared.git("branch", "-D", branch)
        await push.click()
        await expect(top.get_by_text("publication: done")).to_be_visible(timeout=WORK)
        await expect(top).to_contain_text(f"{branch} at {shared.git('rev-parse', branch)[:12]}")
        await expect(push).to_have_count(0)
        assert shared.git("show", f"{branch}:notes.txt") == "two"
        assert shared.git("show", "main:notes.txt") == "one"
        status, text = await _sent(page, f"{visitor.url}runs/{name}/publish", publish="branch")
        assert (status, "is published already" in text) == (409, True), text


async def test_a_diff_that_may_not_be_pushed_is_only_taken(
    console: RealConsole, visit: Visit
) -> None:
    """The page of a run offers no push there, and a form that asks for one is told why not."""
    task = "Let the private notes say two"
    name = await ordered(console, task, _PATCHES, until="run_ended")
    async with visit("operator") as visitor:
        await visitor.open(f"runs/{name}")
        await expect(visitor.page.locator("#diff .line.added")).to_have_text("+two")
        await expect(visitor.page.get_by_role("button", name="Retry")).to_be_visible()
        await expect(visitor.page.get_by_role("button", name="Push branch")).to_have_count(0)
        place = f"{visitor.url}runs/{name}/publish"
        status, text = await _sent(visitor.page, place, publish="branch")
        assert (status, "This service pushes no branches" in text) == (400, True), text
