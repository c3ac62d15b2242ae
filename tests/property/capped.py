"""A process that opens and closes requests on one session, as fast as it can.

python capped.py DATABASE NAME CALLS WORST ACTUAL MAX_REQUESTS MAX_SPEND
"""

import asyncio
import sys

from tests.samples import receipt

from turnout.core.govern.closing import Charge, Closing
from turnout.core.money import Micros
from turnout.core.policies import SessionCaps
from turnout.store.books import BooksStore
from turnout.store.database import open_database


async def main(where: str, name: str, *numbers: str) -> None:
    """Print how many requests were granted."""
    calls, worst, actual, most_requests, most_spend = map(int, numbers)
    charge = Charge("session", "k", "s", SessionCaps(most_requests, Micros(most_spend)))
    async with open_database(where) as database:
        books = BooksStore(database)

        async def call(number: int) -> bool:
            place = await books.open([charge], Micros(worst))
            if place.granted:
                done = receipt(f"{name}-{number}")
                await books.close(Closing(done, (charge,), Micros(worst), Micros(actual)))
            return place.granted

        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        granted = await asyncio.gather(*map(call, range(calls)))
        sys.stdout.write(f"{sum(granted)}\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
