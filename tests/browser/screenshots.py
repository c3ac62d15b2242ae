"""`python -m tests.browser.screenshots FOLDER [PART]` takes a picture of every page of the console.

Each at 1440 and at 390 pixels, light and dark, as an admin sees it, of a service on which something
has happened. With PART only pages whose name holds it.
"""

import asyncio
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from playwright.async_api import Browser
from tests.acceptance.command import FIX, TASK
from tests.browser.chromium import MISSING, find_chromium, open_browser
from tests.browser.crawl import pages_of
from tests.browser.furnished import furnish
from tests.browser.ordering import call, happened, ordered
from tests.browser.real_console import RealConsole, real_console
from tests.browser.scenes import SCENES
from tests.browser.visitor import PHONE, SCREEN, Visitor, visiting

from turnout.testing.turns import Call, Turn

WIDTHS = (SCREEN, PHONE)
THEMES = ("light", "dark")
LONG = 110
"""Steps of a run that is not shown whole at once."""


async def taken(visitor: Visitor, folder: Path, name: str) -> None:
    """Take the four pictures of the page that is open."""
    page = visitor.page
    for width in WIDTHS:
        await page.set_viewport_size({"width": width, "height": 900})
        for theme in THEMES:
            await page.emulate_media(color_scheme=theme)
            await page.screenshot(path=folder / f"{name}-{width}-{theme}.png", full_page=True)
    await page.set_viewport_size({"width": SCREEN, "height": 900})


async def main(folder: Path, part: str, home: Path, executable: str) -> None:
    """Open the service, let things happen, and look at every page."""
    async with open_browser(executable) as browser, real_console(home) as console:
        await pictured(browser, console, folder, part)


async def pictured(browser: Browser, console: RealConsole, folder: Path, part: str) -> None:
    """Take the pictures of the page of each kind, and of where people sign in."""
    made = await furnish(console)
    async with visiting(browser, console.url) as visitor:
        await visitor.open()
        if part in "sign-in":
            await taken(visitor, folder, "sign-in")
            await visitor.page.get_by_label("Key").fill("not a key")
            await visitor.page.get_by_role("button", name="Sign in").click()
            await visitor.page.get_by_role("alert").wait_for()
            await taken(visitor, folder, "sign-in-refused")
        await visitor.sign_in(console.keys["admin"])
        names = {run: state for state, run in asdict(made).items()}
        http = visitor.page.context.request
        for path in await pages_of(http, console.url, *(f"runs/{name}" for name in made.runs)):
            name = named(path, names)
            if part in name:
                await visitor.open(path)
                await visitor.page.locator("section[hx-trigger=load]").wait_for(state="detached")
                await taken(visitor, folder, name)
        for name, scene in SCENES.items():
            if part in name:
                await scene(visitor, made)
                await taken(visitor, folder, name)
        if part in "run-printed":
            await visitor.open(f"runs/{made.fixed}")
            await visitor.page.locator("#diff table").wait_for()
            await visitor.page.pdf(path=folder / "run-printed.pdf", format="A4")
            await visitor.page.emulate_media(media="print")
            await taken(visitor, folder, "run-printed")
    async with visiting(browser, console.url) as visitor:
        await visitor.sign_in(console.keys["viewer"])
        for path in (f"runs/{made.waiting}", "policies/_new"):
            if part in (name := f"viewer-{named(path, names)}"):
                await visitor.open(path)
                await taken(visitor, folder, name)
    if part in "run-at-work":
        await at_work(browser, console, folder)


async def at_work(browser: Browser, console: RealConsole, folder: Path) -> None:
    """Take those of a long run, of one that a model keeps waiting, and of one in the queue."""
    steps = [Turn(calls=(Call("run", {"command": f"echo {n}"}),)) for n in range(LONG)]
    turns = [Turn("1. Count.\n2. Stop."), *steps, Turn("Counted."), Turn("Nothing changed.")]
    more = {"max_steps": LONG + 1}
    long = await ordered(console, "Count", turns, surface="shell", limits=more, until="run_ended")
    slow = Turn("Late.", delay=90.0)
    async with visiting(browser, console.url) as visitor:
        await visitor.sign_in(console.keys["operator"])
        await visitor.open(f"runs/{long}")
        await taken(visitor, folder, "run-long")
        running = await ordered(
            console, f"{TASK} slowly", (*FIX[:2], slow), repo="pages", until="tool_call_done"
        )
        other = await ordered(console, "Wait", (slow,), until="step_started")
        queued = await ordered(console, "Begin later")
        for state, run in {"running": running, "queued": queued}.items():
            await visitor.open(f"runs/{run}")
            await taken(visitor, folder, f"run-{state}")
        await visitor.open("runs")
        await taken(visitor, folder, "runs-at-work")
        for run in (queued, other, running):
            await call(console, "POST", f"/runs/{run}/cancel")
        await visitor.open(f"runs/{running}")
        await taken(visitor, folder, "run-stopping")
        for run in (other, running):
            await happened(console, run, "run_ended")


def named(path: str, runs: Mapping[str, str]) -> str:
    """Return the name of a page's pictures, with the state of a run in place of its name."""
    for run, state in runs.items():
        path = path.replace(f"runs/{run}", f"run-{state}").replace(run, state)
    path = re.sub(r"req-[0-9a-f]{8,}", "one", path)
    return re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-") or "first"


if __name__ == "__main__":
    wanted = Path(sys.argv[1])
    wanted.mkdir(parents=True, exist_ok=True)
    chromium = find_chromium()
    if chromium is None:
        sys.exit(MISSING)
    with tempfile.TemporaryDirectory(prefix="turnout-pictures-") as made:
        state = Path(made)
        state.chmod(0o711)
        asyncio.run(main(wanted, "".join(sys.argv[2:3]), state, chromium))
