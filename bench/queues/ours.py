"""Our own queue, for `run_queue.py`: `python ours.py work|order URL NAME`.

`work` claims runs until it is killed and says `NAME RUN SECONDS` on a line as it starts one, by the
monotonic clock of the machine; a run whose name begins with `held` is worked on for ever. `order`
orders the runs that are named on its input, a line each, and says the moment before each.
"""

import asyncio
import sys
import time

from turnout.core.clock import SystemClock
from turnout.core.events import RunEnded, RunStarted
from turnout.core.ids import RunId
from turnout.core.service.orders import Order, OrderedRun
from turnout.core.tasks import Task
from turnout.runs.durable.engine import Pace, TaskEngine, Worker
from turnout.runs.durable.turns import Turns
from turnout.runs.stop import Stop
from turnout.store.bell import listening
from turnout.store.database import Database, open_database
from turnout.store.orders import OrdersStore
from turnout.store.record import RecordStore

PACE = Pace(beat=1.0, stale=5.0, look=1.0)


def say(*words: object) -> None:
    """Say words on a line, the moment last."""
    sys.stdout.write(" ".join(map(str, (*words, time.monotonic()))) + "\n")
    sys.stdout.flush()


async def work(database: Database, name: str) -> None:
    """Work on what comes, as the service does."""
    orders, records, clock = OrdersStore(database), RecordStore(database), SystemClock()

    async def segment(run: OrderedRun, _: Stop) -> None:
        say(name, run.run_id)
        if run.run_id.startswith("held"):
            await asyncio.Event().wait()
        both = (RunStarted(run.order.task, "", "loop"), RunEnded("answered", "Done."))
        await records.append_all(run.run_id, run.epoch, both, clock.now())

    worker = Worker(name, 2, pace=PACE)
    engine = TaskEngine(orders, records, segment, Turns().pick, clock, worker)
    async with engine, listening(database, engine.wake):
        say(name, "ready")
        await asyncio.Event().wait()


async def order(database: Database, name: str) -> None:
    """Order what is named, one after the other."""
    orders, clock = OrdersStore(database), SystemClock()
    say(name, "ready")
    while line := await asyncio.to_thread(sys.stdin.readline):
        say(name, line.strip())
        asked = Order(Task("Fix it.", "shop"), "red", "key")
        await orders.submit(RunId(line.strip()), asked, clock.now())


async def main(what: str, url: str, name: str) -> None:
    """Do one of both."""
    async with open_database(url) as database:
        await {"work": work, "order": order}[what](database, name)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
