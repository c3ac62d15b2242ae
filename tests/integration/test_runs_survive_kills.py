"""Runs whose workers, gateways and databases go away end as if nothing had happened."""

import asyncio

import pytest
from tests.databases import KINDS, url_of
from tests.postgres import stoppable_postgres

from turnout.testing.fleet.counting import Counting
from turnout.testing.fleet.fleet import open_fleet
from turnout.testing.fleet.scenarios import (
    Ground,
    Size,
    approval_without_workers,
    identical_intakes,
)

pytestmark = pytest.mark.chaos


@pytest.mark.parametrize("kind", KINDS)
async def test_workers_come_and_go_and_no_run_notices(kind, request, tmp_path):
    """One is killed, another is asked to end: others take over what they had within seconds.

    No call is made twice, and the gateway, which lives, asks no model twice for an answer.
    """
    model = Counting(0.05)
    with url_of(kind, request, tmp_path) as url:
        where = url if kind == "postgresql" else None
        async with open_fleet(tmp_path / "state", model, where) as (fleet, desk), fleet.gateway():
            await desk.order(2, 3)
            killed, ended = await asyncio.gather(fleet.start("work"), fleet.start("work"))
            await desk.progress(14)
            await killed.kill()
            await desk.progress(6)
            async with fleet.working():
                await ended.end()
                await desk.end(60)
            assert await desk.faults(3) == []
        assert set(model.asked.values()) == {1}
        assert "" not in model.asked


async def test_a_killed_service_goes_on_with_its_runs(tmp_path):
    """Gateway and worker in one process, killed: no step is lost or done twice.

    Only a call that was under way may be asked for again, and its receipt says so.
    """
    model = Counting(0.02)
    async with open_fleet(tmp_path / "state", model) as (fleet, desk):
        await desk.order(2, 3)
        service = await fleet.start("all")
        await desk.progress(20)
        await service.kill()
        under_way = await desk.claims()
        async with fleet.gateway(), fleet.working():
            await desk.end(60)
        assert await desk.faults(3) == []
        unknown = await desk.unknown()
        assert unknown <= under_way
        assert model.asked_again <= len(unknown)


async def test_an_outage_of_the_database_loses_nothing(tmp_path):
    """Gateway and worker wait until it is back, and go on where they were."""
    model = Counting(0.02)
    with stoppable_postgres() as server:
        async with (
            open_fleet(tmp_path / "state", model, server.url) as (fleet, desk),
            fleet.gateway(),
            fleet.working(),
        ):
            await desk.order(2, 2)
            await desk.progress(8)
            await asyncio.to_thread(server.stop)
            await asyncio.sleep(0.5)
            await asyncio.to_thread(server.start)
            await desk.end(60)
            assert await desk.faults(2) == []
            assert model.asked_again <= len(await desk.unknown())
    assert "" not in model.asked


async def test_a_decision_given_while_no_worker_lives_is_acted_on(tmp_path):
    """The run goes on with it as soon as there is one."""
    outcome = await approval_without_workers(Ground(tmp_path / "state"), Size(1, 1, seconds=60))
    assert outcome.faults == []
    assert outcome.figures["decided"] == 1


@pytest.mark.parametrize("kind", KINDS)
async def test_fifty_identical_orders_over_several_connections_are_one_run(kind, request, tmp_path):
    """Whoever of them comes first."""
    with url_of(kind, request, tmp_path) as url:
        ground = Ground(tmp_path, url=url if kind == "postgresql" else None)
        assert (await identical_intakes(ground, 50, connections=3)).faults == []
