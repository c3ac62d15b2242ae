"""How fast the page of a long run is: 500 steps with 5 MB of output, in Debian's Chromium.

The service is `turnout serve` in a process of its own, the record is in SQLite, and the browser is
opened anew each time, so that nothing is in its cache. First render: from asking for the page until
its first content is painted. Live: from the commit of a step behind the service's back, as by a
worker elsewhere, until the open page shows it.
"""

import asyncio
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.async_api import Browser, BrowserContext, async_playwright

from frame import parse_options, percentile, report
from turnout.core.clock import SystemClock
from turnout.core.govern.keys import KeyLimits, KeyRecord
from turnout.core.ids import RunId
from turnout.core.service.orders import Order, OrderedRun
from turnout.core.tasks import Task
from turnout.gateway.keys.desk import KeyDesk
from turnout.store.database import Database, open_database
from turnout.store.keys import KeysStore
from turnout.store.orders import OrdersStore
from turnout.store.record import RecordStore
from turnout.testing.model_server import ScriptedModelServer
from turnout.testing.records.long import long_record, step_events

RUN = RunId("run-0000000010e6")
STEPS, CHARACTERS = 500, 5_000_000
SECONDS = 60.0
_TIMES = """
async () => {
  const [page] = performance.getEntriesByType('navigation');
  const paint = await new Promise(done => new PerformanceObserver(list => {
    const [first] = list.getEntriesByName('first-contentful-paint');
    if (first) done(first);
  }).observe({type: 'paint', buffered: true}));
  return {answered: page.responseStart, painted: paint.startTime, loaded: page.loadEventEnd,
    bytes: page.decodedBodySize, elements: document.getElementsByTagName('*').length};
}
"""


@dataclass(frozen=True, slots=True)
class Served:
    """A service with one long run, and who may look at it."""

    url: str
    key: str
    records: RecordStore
    run: OrderedRun


async def seeded(database: Database) -> tuple[str, OrderedRun]:
    """Make a key, and a run that a worker of nobody has."""
    clock = SystemClock()
    wanted = KeyRecord("bench", "bench", ("default",), KeyLimits(), clock.now(), "", role="viewer")
    key = (await KeyDesk(KeysStore(database), clock).create(wanted)).key
    orders, task = OrdersStore(database), Task("Fix it.", "shop")
    await orders.submit(RUN, Order(task, "bench", "bench"), clock.now())
    run = await orders.claim("bench", lambda _: RUN, clock.now())
    assert run is not None
    events = long_record(task, STEPS, CHARACTERS)
    await RecordStore(database).append_all(RUN, run.epoch, events, clock.now())
    return key, run


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Served]:
    """Serve it until the end, without a worker."""
    async with (
        open_database(folder / "turnout.db") as database,
        ScriptedModelServer(models=["m"]) as model,
    ):
        key, run = await seeded(database)
        program = Path(sys.executable).with_name("turnout")
        process = await asyncio.create_subprocess_exec(
            program,
            *("serve", "--port", "0", "--roles", "api", "--quiet"),
            cwd=folder,
            env={
                "PATH": os.defpath,
                "TURNOUT_HOME": str(folder),
                "LLM_BASE_URL": model.base_url,
                "LLM_MODEL": "m",
            },
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        try:
            async with asyncio.timeout(SECONDS):
                said = (await process.stdout.readline()).decode()
            if not said:
                sys.exit("The service did not start; what it says stands above.")
            root = said.split()[1].removesuffix("/v1")
            yield Served(f"{root}/console/", key, RecordStore(database), run)
        finally:
            process.terminate()
            await process.wait()


async def signed_in(browser: Browser, served: Served) -> BrowserContext:
    """Return a new visitor, with an empty cache."""
    context = await browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(SECONDS * 1000)
    answer = await context.request.post(f"{served.url}sign-in", form={"key": served.key})
    assert answer.ok, answer.status
    return context


async def rendered(browser: Browser, served: Served) -> dict[str, float]:
    """Open the page once and return what it took, in milliseconds."""
    context = await signed_in(browser, served)
    page = await context.new_page()
    await page.goto(f"{served.url}runs/{RUN}", wait_until="load")
    times: dict[str, float] = await page.evaluate(_TIMES)
    await context.close()
    return times


async def live(browser: Browser, served: Served, events: int) -> list[float]:
    """Let steps happen while the page is open, and return until when each was seen."""
    context = await signed_in(browser, served)
    page = await context.new_page()
    await page.goto(f"{served.url}runs/{RUN}", wait_until="load")
    times = []
    for step in range(STEPS + 2, STEPS + 2 + events):
        at = time.monotonic()
        await served.records.append_all(
            RUN, served.run.epoch, step_events(step, 10_000), SystemClock().now()
        )
        seen = page.get_by_text(re.compile(rf"Step {step}\b")).first
        await seen.wait_for(state="attached")
        times.append((time.monotonic() - at) * 1000)
    await context.close()
    return times


async def main() -> None:
    """Measure and report."""
    options = parse_options("How fast the page of a run of 500 steps and 5 MB of output is.")
    names = ("chromium-headless-shell", "chromium")
    executable = next(filter(None, map(shutil.which, names)), None)
    if executable is None:
        sys.exit("No Chromium is installed: apt-get install chromium-headless-shell")
    with tempfile.TemporaryDirectory(prefix="turnout-bench-") as folder:
        async with serving(Path(folder)) as served, async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=executable, chromium_sandbox=False
            )
            await rendered(browser, served)
            times = [await rendered(browser, served) for _ in range(options.pick(30, 5))]
            seen = await live(browser, served, options.pick(30, 5))
            version = browser.version
            await browser.close()

    def ms(name: str, share: float) -> float:
        return round(percentile([[each[name] for each in times]], share), 1)

    report(
        "console",
        options,
        {
            "first_render_p50_ms": ms("painted", 0.5),
            "first_render_p95_ms": ms("painted", 0.95),
            "answered_p50_ms": ms("answered", 0.5),
            "loaded_p50_ms": ms("loaded", 0.5),
            "live_p50_ms": round(percentile([seen], 0.5), 1),
            "live_p95_ms": round(percentile([seen], 0.95), 1),
            "page_kb": round(times[-1]["bytes"] / 1000, 1),
            "page_elements": times[-1]["elements"],
        },
        facts={"steps": STEPS, "output_characters": CHARACTERS, "chromium": version},
    )


if __name__ == "__main__":
    asyncio.run(main())
