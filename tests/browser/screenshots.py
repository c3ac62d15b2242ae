"""`python -m tests.browser.screenshots FOLDER [PART]` takes a picture of every page of the console.

Each at 1440 and at 390 pixels, light and dark, as an admin sees it, of a service on which something
has happened. With PART only pages whose address holds it.
"""

import asyncio
import re
import sys
import tempfile
from pathlib import Path

from playwright.async_api import Browser
from tests.browser.chromium import MISSING, find_chromium, open_browser
from tests.browser.crawl import pages_of
from tests.browser.furnished import furnish
from tests.browser.real_console import RealConsole, real_console
from tests.browser.visitor import PHONE, SCREEN, Visitor, visiting

WIDTHS = (SCREEN, PHONE)
THEMES = ("light", "dark")


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
        await taken(visitor, folder, "sign-in")
        await visitor.sign_in(console.keys["admin"])
        http = visitor.page.context.request
        for path in await pages_of(http, console.url, *(f"runs/{name}" for name in made.runs)):
            name = re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-") or "first"
            if part in name:
                await visitor.open(path)
                await taken(visitor, folder, name)


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
