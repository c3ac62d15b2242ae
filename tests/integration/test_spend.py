"""What runs of a service cost, asked for and put right from somewhere else."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from click.testing import CliRunner
from tests.integration.real_service import RealService, real_service
from tests.samples import receipt
from tests.unit.web.rooms import END, now

from turnout.cli.main import command
from turnout.core.ids import RunId
from turnout.core.service.orders import Order
from turnout.core.tasks import Task
from turnout.store.orders import OrdersStore
from turnout.store.receipts import ReceiptsStore

PAID, FREE = RunId("run-0123456789ab"), RunId("run-0123456789cd")
ORDER = Order(Task("Fix it.", "shop"), "red", "red-member")


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[RealService]:
    """Serve two runs that have ended, of one of which a call is on a receipt alone."""
    async with real_service(tmp_path) as service:
        for run_id in (FREE, PAID):
            await OrdersStore(service.database).submit(run_id, ORDER, now())
            await service.begun(run_id, *END)
        paid = receipt("req-1", session=PAID, key="red-member")
        await ReceiptsStore(service.database).add(paid)
        yield service


async def reconcile(service: RealService, key: str, *options: str) -> tuple[int, str]:
    """Run the command in a thread, as it makes a loop of its own."""
    server = service.url.removesuffix("/v1")
    done = await asyncio.to_thread(
        CliRunner().invoke,
        command,
        ["runs", "reconcile", "--server", server, *options],
        env={"TURNOUT_API_KEY": service.keys[key]},
        standalone_mode=False,
    )
    return (done.return_value if isinstance(done.return_value, int) else -1), done.output


async def test_a_record_is_put_right_over_the_api(service: RealService) -> None:
    """By who may order runs; who may only read is shown the difference, as often as he asks."""
    cost = receipt().cost_micros
    for _ in range(2):
        code, said = await reconcile(service, "red-viewer", PAID, "--dry-run", "--json")
        (run,) = json.loads(said)["runs"]
        assert (code, run["recorded_micros"], run["charged_micros"]) == (1, 0, cost)
    assert (await reconcile(service, "red-viewer", PAID))[0] == -1
    assert (await reconcile(service, "blue-approver", PAID))[0] == -1
    code, said = await reconcile(service, "red-member", "--all")
    assert (code, said.splitlines()[-1]) == (1, "2 runs compared, 1 differed.")
    assert f"{PAID}: " in said
    assert await reconcile(service, "red-member", "--all") == (0, "2 runs compared, 0 differed.\n")
    assert (await reconcile(service, "red-member"))[1].startswith(f"{PAID}: ")
