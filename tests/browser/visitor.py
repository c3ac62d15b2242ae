"""Somebody in front of a browser, and all that must not happen to them."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urljoin, urlsplit

from playwright.async_api import Browser, Dialog, Page, Request, Response, StorageState

__all__ = ["PHONE", "SCREEN", "Visitor", "visiting"]

PHONE: Final = 390
SCREEN: Final = 1440
_HEIGHT: Final = 900
_SECONDS: Final = 20.0
_REFUSED: Final = re.compile(
    r"Failed to load resource: the server responded with a status of 4\d\d"
)
"""Chromium says so of every answer that tells of a mistake; what is on the page is looked at."""
_LOCAL: Final = frozenset({"data", "blob", "about"})


@dataclass
class Visitor:
    """A page, and what has gone wrong on it since it was opened."""

    page: Page
    url: str
    """Of the console, with a slash at the end."""
    faults: list[str] = field(default_factory=list)
    """Errors, dialogs, new windows, and requests to anything but the service."""
    reconnects: bool = False
    """Whether connections may break."""

    async def open(self, path: str = "") -> Response:
        """Open a page of the console and return what was answered."""
        answer = await self.page.goto(urljoin(self.url, path), wait_until="load")
        assert answer is not None, f"{path} is on the page that was open"
        return answer

    async def sign_in(self, key: str) -> None:
        """Sign in with a key, and be shown the runs."""
        await self.open()
        await self.page.get_by_label("Key").fill(key)
        await self.page.get_by_role("button", name="Sign in").click()
        await self.page.get_by_role("heading", level=1, name="Runs").wait_for()

    async def overflow(self) -> list[str]:
        """Return what is wider than the window, or stands out of it, outermost first."""
        return await self.page.evaluate(_OVERFLOW)

    async def text(self) -> str:
        """Return all text that the page holds, seen or not."""
        return await self.page.evaluate("document.documentElement.textContent")

    def watch(self, page: Page) -> None:
        """Note what goes wrong on a page."""
        page.on("console", lambda said: self._said(said.type, said.text))
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.on("dialog", self._dismiss)
        page.on("crash", lambda _: self.faults.append("the page has crashed"))
        page.on("popup", lambda other: self.faults.append(f"a new window: {other.url}"))
        page.on("request", self._sent)

    def _said(self, kind: str, text: str) -> None:
        broken = self.reconnects and re.search("net::ERR_|network error", text)
        if kind == "error" and not _REFUSED.match(text) and not broken:
            self.faults.append(f"{urlsplit(self.page.url).path} says: {text}")

    async def _dismiss(self, dialog: Dialog) -> None:
        self.faults.append(f"a dialog: {dialog.message}")
        await dialog.dismiss()

    def _sent(self, request: Request) -> None:
        there, ours = urlsplit(request.url), urlsplit(self.url)
        if there.netloc != ours.netloc and there.scheme not in _LOCAL:
            self.faults.append(f"a request to {request.url}")


@asynccontextmanager
async def visiting(
    browser: Browser,
    url: str,
    *,
    state: StorageState | None = None,
    width: int = SCREEN,
    reconnects: bool = False,
) -> AsyncIterator[Visitor]:
    """Open a page of somebody's own; what goes wrong on it fails the test at its end."""
    context = await browser.new_context(
        storage_state=state,
        viewport={"width": width, "height": _HEIGHT},
        reduced_motion="reduce",
        timezone_id="UTC",
    )
    context.set_default_timeout(_SECONDS * 1000)
    try:
        page = await context.new_page()
        visitor = Visitor(page, url, reconnects=reconnects)
        visitor.watch(page)
        yield visitor
        assert visitor.faults == []
    finally:
        await context.close()


_OVERFLOW: Final = """
() => {
  const root = document.scrollingElement;
  if (root.scrollWidth <= innerWidth + 1) return [];
  const wide = (element) => element.scrollWidth > innerWidth + 1
    || element.getBoundingClientRect().right > innerWidth + 1;
  const spills = (element) => {
    for (let one = element; one !== document.body; one = one.parentElement)
      if (getComputedStyle(one).overflowX !== 'visible') return false;
    return true;
  };
  const found = [...document.body.querySelectorAll('*')].filter(one => wide(one) && spills(one))
    .map(one => `${one.tagName.toLowerCase()}.${one.className}: ${one.textContent.slice(0, 40)}`);
  return [`the page is ${root.scrollWidth} wide`, ...found.reverse().slice(0, 5)];
}
"""
