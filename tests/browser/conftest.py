"""One browser and one service for all tests of a worker; everybody has pages of their own."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import pytest_asyncio
from playwright.async_api import Browser, StorageState
from tests.browser.chromium import MISSING, find_chromium, open_browser
from tests.browser.furnished import Furnished, furnish
from tests.browser.real_console import ConsoleRole, RealConsole, real_console
from tests.browser.visitor import SCREEN, Visitor, visiting
from tests.overdue import unbounded

Visit = Callable[..., AbstractAsyncContextManager[Visitor]]
"""Takes a role; opens a page of somebody who is signed in so, or not at all.

`width` is that of the window in pixels, `url` another way to the console.
"""


@pytest.fixture(scope="session")
def home() -> Iterator[Path]:
    """Make a state folder that sandboxes can reach into."""
    with TemporaryDirectory(prefix="turnout-console-") as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Start the browser."""
    executable = find_chromium()
    if executable is None:
        pytest.skip(MISSING)
    async with AsyncExitStack() as stack:
        with unbounded():
            opened = await stack.enter_async_context(open_browser(executable))
        yield opened


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def console(home: Path, browser: Browser) -> AsyncIterator[RealConsole]:
    """Start the service."""
    async with AsyncExitStack() as stack:
        with unbounded():
            opened = await stack.enter_async_context(real_console(home))
        yield opened


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def furnished(console: RealConsole) -> Furnished:
    """Have something happen there that can be looked at."""
    with unbounded():
        return await furnish(console)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def visit(console: RealConsole, browser: Browser) -> Visit:
    """Return what opens pages; each role signs in once."""
    states: dict[ConsoleRole, StorageState] = {}

    async def state(role: ConsoleRole) -> StorageState:
        if role not in states:
            async with visiting(browser, console.url) as visitor:
                await visitor.sign_in(console.keys[role])
                states[role] = await visitor.page.context.storage_state()
        return states[role]

    @asynccontextmanager
    async def open_page(
        role: ConsoleRole | None, *, width: int = SCREEN, url: str = "", reconnects: bool = False
    ) -> AsyncIterator[Visitor]:
        opening = visiting(
            browser,
            url or console.url,
            state=None if role is None else await state(role),
            width=width,
            reconnects=reconnects,
        )
        async with opening as visitor:
            yield visitor

    return open_page
