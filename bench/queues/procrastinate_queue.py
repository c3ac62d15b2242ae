"""Procrastinate's queue, for `run_queue.py`; it speaks as `ours.py` does.

It looks for the jobs of dead workers as often as we do, and takes a worker for dead as late.
`weigh` says what the library brings along, as JSON: packages by name, bytes, lines of its own.
"""

import asyncio
import importlib.metadata
import json
import re
import sys
import time

from procrastinate import App, PsycopgConnector

BEAT, STALE = 1.0, 5.0


def say(*words: object) -> None:
    """Say words on a line, the moment last."""
    sys.stdout.write(" ".join(map(str, (*words, time.monotonic()))) + "\n")
    sys.stdout.flush()


async def main(what: str, url: str, name: str) -> None:
    """Work on what comes, or order what is named."""
    app = App(connector=PsycopgConnector(conninfo=url))

    @app.task(name="work")
    async def work(job: str) -> None:
        say(name, job)
        if job.startswith("held"):
            await asyncio.Event().wait()

    async def rescue() -> None:
        while True:
            await asyncio.sleep(BEAT)
            for stalled in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=STALE):
                await app.job_manager.retry_job(stalled)

    async with app.open_async():
        if what == "order":
            say(name, "ready")
            while line := await asyncio.to_thread(sys.stdin.readline):
                say(name, line.strip())
                await work.configure(lock=line.strip()).defer_async(job=line.strip())
            return
        if not await app.check_connection_async():
            await app.schema_manager.apply_schema_async()
        rescuing = asyncio.create_task(rescue())
        say(name, "ready")
        try:
            await app.run_worker_async(
                concurrency=2, update_heartbeat_interval=BEAT, stalled_worker_timeout=STALE
            )
        finally:
            rescuing.cancel()


def weigh() -> None:
    """Say what is installed because of the library."""
    waiting, found, size = ["procrastinate"], set[str](), 0
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            package = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        found.add(name)
        size += sum(f.locate().stat().st_size for f in package.files or () if f.locate().exists())
        needs = [need for need in package.requires or () if "extra ==" not in need]
        waiting += [re.split(r"[^A-Za-z0-9._-]", need)[0].lower() for need in needs]
    own = importlib.metadata.distribution("procrastinate").files or ()
    lines = sum(f.read_text().count("\n") for f in own if f.suffix in {".py", ".sql"})
    print(json.dumps({"packages": sorted(found), "bytes": size, "lines": lines}))


if __name__ == "__main__":
    if sys.argv[1] == "weigh":
        weigh()
    else:
        asyncio.run(main(*sys.argv[1:4]))
