"""Opens the durable service for an evaluation, in its own process and for its own runs alone."""

import os
import secrets
import socket
import tempfile
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from turnout.core.clock import Clock, SystemClock
from turnout.core.money import Micros
from turnout.core.policies import Policy
from turnout.core.service.orders import Order, OrderLimits
from turnout.core.tasks import SurfaceName
from turnout.errors import ConfigError, GatewayError
from turnout.evals.trials.arms import Arm, ArmAsk
from turnout.evals.trials.places import Places
from turnout.evals.trials.programs import HostPrograms
from turnout.evals.trials.run import Doers, Shared, Trials
from turnout.evals.trials.service import ServiceRuns, Wanted, project_of
from turnout.gateway.access import sent_key
from turnout.gateway.exchange import Caller
from turnout.gateway.server import serve
from turnout.runs.checkpoints.ports import Checkpoints
from turnout.runs.durable.desk import Desk
from turnout.runs.durable.engine import Pace, TaskEngine, Worker
from turnout.runs.durable.following import Following
from turnout.runs.durable.segment import Outfit, Segments
from turnout.runs.observe.tagging import tagged
from turnout.runs.ports import Report
from turnout.runs.service import check_walls
from turnout.sandbox.base import SandboxDriver
from turnout.sandbox.bubblewrap import BubblewrapDriver
from turnout.sandbox.container.driver import ContainerDriver
from turnout.sandbox.repository import resolve
from turnout.settings import Settings
from turnout.store.bell import listening
from turnout.store.database import Database, open_database
from turnout.store.orders import OrdersStore
from turnout.store.policies import PoliciesStore
from turnout.store.record import RecordStore
from turnout.store.spend import SpendStore
from turnout.wiring.evaluation.arms import ServedArm, check_model, find_policies, served_arm
from turnout.wiring.evaluation.grading import grader_of
from turnout.wiring.evaluation.leases import ProgramLeases
from turnout.wiring.evaluation.local import serve_local
from turnout.wiring.evaluation.under import Under
from turnout.wiring.gateway import Site, access_for, app_of, ground_of, site_of
from turnout.wiring.rooms import workshop_of
from turnout.wiring.sandboxes import check_egress, open_sandboxes
from turnout.wiring.serving.checkpoints import open_checkpoints
from turnout.wiring.serving.durable import only_worker, within
from turnout.wiring.serving.models import OwnModels
from turnout.wiring.sources import check_counted, check_names, endpoint_catalog
from turnout.wiring.state import database_of, state_folder_of

__all__ = ["OpenEvaluation", "Plan", "grading_slots", "open_evaluation"]

_LOOPBACK: Final = "127.0.0.1"
_PACE: Final = Pace(grace=1.0)
"""Whoever ends an evaluation early has asked twice for it to end now."""
_GRADING_BYTES: Final = 1 << 30
_PROGRAM_SECONDS: Final = 1_800.0
"""That a command may take where nobody has set a limit."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What an evaluation is opened for."""

    asks: tuple[ArmAsk, ...]
    drafts: Mapping[str, Policy]
    """Policies of files, by the text that names them in an arm."""
    surface: SurfaceName
    limits: OrderLimits
    """Of each run."""
    concurrency: int
    """Runs that are worked on at once."""
    grading: int
    """Patches that are graded at once, beside them."""
    counted: bool
    """Whether the price of every call must be known."""


@dataclass(frozen=True, slots=True)
class OpenEvaluation:
    """What trials are run with, in this process."""

    trials: Trials
    arms: tuple[Arm, ...]
    clock: Clock
    under: Under


def grading_slots() -> int:
    """Return how many patches this machine grades at once: its cores, as far as memory goes."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(os.cpu_count() or 1, free // _GRADING_BYTES))


@asynccontextmanager
async def open_evaluation(
    settings: Settings, plan: Plan, report: Report
) -> AsyncIterator[OpenEvaluation]:
    """Open what trials are run with; what runs are under way at the end go on the next time.

    `UnfitError` or `ConfigError` where an arm cannot be run at all.
    """
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        check_egress(settings)
        database = await stack.enter_async_context(open_database(database_of(settings)))
        local = await serve_local(settings, _pins(plan.asks), stack, report)
        settings = local.settings
        policies = await find_policies(plan.asks, plan.drafts, settings, PoliciesStore(database))
        served = [
            served_arm(ask, policies, settings, plan.surface, plan.limits) for ask in plan.asks
        ]
        arms = {project_of(each.arm): each for each in served}
        driver = await stack.enter_async_context(
            open_sandboxes(settings, streams=settings.shares_checkpoints)
        )
        await check_walls(driver)
        leases = ProgramLeases(lambda arm, name: _caller(arms[project_of(arm)], name))
        ground = await ground_of(_with_catalog(settings, plan.asks), database, clock, stack)
        site = await site_of(
            ground, report, "absent", policies.frozen(clock.now()), on_receipt=leases.saw
        )
        _check(arms.values(), site, plan)
        models = await _gateways(site, arms, leases, settings, stack)
        checkpoints = await stack.enter_async_context(open_checkpoints(settings, driver))
        outfits = _Outfits(arms, models, driver, checkpoints)
        works = await _works(settings, plan, database, outfits, stack)
        programs = _programs(settings, plan, driver, leases)
        grader = grader_of(settings, driver)
        receipts = SpendStore(database, clock)
        yield OpenEvaluation(
            _trials(settings, plan, Doers(works, programs, grader, receipts)),
            tuple(each.arm for each in served),
            clock,
            Under(settings, plan.asks, served, site.settled.catalog, local),
        )


def _with_catalog(settings: Settings, asks: Sequence[ArmAsk]) -> Settings:
    """Return settings under which an endpoint of the environment is asked for no other models.

    Where every arm names its model, none need be looked for.
    """
    named = [ask.value for ask in asks if ask.kind == "model"]
    if settings.catalog.deployments or settings.endpoint is None or len(named) < len(asks):
        return settings
    return replace(
        settings, catalog=endpoint_catalog(settings.endpoint, tuple(dict.fromkeys(named)))
    )


def _pins(asks: Sequence[ArmAsk]) -> Sequence[str | None]:
    """Return the model that each arm is pinned to; None for those that are routed."""
    return [ask.value if ask.kind == "model" else None for ask in asks]


def _check(arms: Collection[ServedArm], site: Site, plan: Plan) -> None:
    """Refuse arms that no model may work for, or whose calls could not be counted."""
    for ask in plan.asks:
        check_model(ask, site.settled.catalog)
    for served in arms:
        if served.arm.kind == "command":
            continue
        check_names(served.settings, site.settled.catalog)
        access_for(served.settings, site)
        if plan.counted:
            config = replace(served.settings.agent, max_spend=Micros(0))
            check_counted(config, served.settings.policy, site.settled.catalog)


def _caller(served: ServedArm, name: str) -> Caller:
    policy = served.settings.policy.name
    return Caller(name, project_of(served.arm), policies=(policy,), role="models")


async def _gateways(
    site: Site,
    arms: Mapping[str, ServedArm],
    leases: ProgramLeases,
    settings: Settings,
    stack: AsyncExitStack,
) -> OwnModels:
    """Serve the gateway to the worker, and to commands where there are any."""

    def authenticate(headers: Mapping[str, str]) -> Caller:
        name, _, rest = sent_key(headers).partition("/")
        served = arms.get(rest.partition("/")[0])
        if served is None:
            raise GatewayError("There is no such arm.", status=401, code="invalid_api_key")
        return _caller(served, name)

    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="turnout-"))
    # Its folder is closed to all other users: who reaches the socket is a worker of ours.
    uds = Path(folder) / "gateway.sock"
    await stack.enter_async_context(serve(app_of(site, authenticate), uds=uds))
    if any(served.arm.kind == "command" for served in arms.values()):
        app = app_of(site, leases.authenticate)
        bound = await stack.enter_async_context(serve(app, host=_LOOPBACK))
        leases.base_url = bound.base_url
    return OwnModels(settings, site, authenticate, SystemClock(), uds, lasting=False)


@dataclass(frozen=True, slots=True)
class _Outfits:
    """Opens what an order is worked on with, as its arm has it."""

    arms: Mapping[str, ServedArm]
    models: OwnModels
    driver: SandboxDriver
    checkpoints: Checkpoints

    @asynccontextmanager
    async def of(self, order: Order) -> AsyncIterator[Outfit]:
        """Open it; `ModelUnavailableError` where the arm's model may not work."""
        served = self.arms[order.project].settings
        settings = replace(served, agent=within(served.agent, order.limits))
        async with replace(self.models, settings=settings).of(order) as access:
            shop = workshop_of(settings, self.driver, self.models.clock)
            yield Outfit(replace(shop, checkpoints=self.checkpoints), access)


async def _works(
    settings: Settings,
    plan: Plan,
    database: Database,
    outfits: _Outfits,
    stack: AsyncExitStack,
) -> ServiceRuns:
    """Open the durable service with a worker for the runs that this process orders."""
    clock, wanted = outfits.models.clock, Wanted()
    records = RecordStore(database, settings.redactor)
    orders = OrdersStore(database, redactor=settings.redactor)
    following = await stack.enter_async_context(Following(orders, records, clock))
    only = stack.enter_context(only_worker(state_folder_of(settings)))
    segments = Segments(
        orders,
        records,
        outfits.of,
        resolve,
        str,
        clock,
        lambda entry: following.wake(entry.run_id),
    )
    name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"
    alone = only and settings.database is None
    engine = TaskEngine(
        orders,
        records,
        tagged(segments.work),
        wanted.pick,
        clock,
        Worker(name, plan.concurrency, alone, _PACE),
    )
    await stack.enter_async_context(engine)
    await stack.enter_async_context(listening(database, engine.wake))
    desk = Desk(orders, records, engine, following, clock)
    return ServiceRuns(desk, engine, wanted, plan.limits, clock)


def _programs(
    settings: Settings, plan: Plan, driver: SandboxDriver, leases: ProgramLeases
) -> HostPrograms | None:
    if not any(ask.kind == "command" for ask in plan.asks):
        return None
    if not isinstance(driver, BubblewrapDriver | ContainerDriver):
        raise ConfigError(
            f"Arms that are commands take sandboxes of this machine, not {driver.name}.",
            mend="Choose --sandbox bubblewrap or container.",
        )
    return HostPrograms(
        driver,
        state_folder_of(settings),
        leases,
        SystemClock(),
        plan.limits.max_seconds or _PROGRAM_SECONDS,
        settings.host_environment,
    )


def _trials(settings: Settings, plan: Plan, doers: Doers) -> Trials:
    return Trials(
        doers,
        Places(state_folder_of(settings)),
        SystemClock(),
        grading=plan.grading,
        shared=Shared(plan.surface, settings.setup),
    )
