"""The one place that names the concrete class behind every port, and joins the rooms."""

import asyncio
import importlib.util
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from turnout.agent.approval import Approver
from turnout.agent.base import AgentConfig, ModelClient, Strategy
from turnout.agent.client import HttpModelClient
from turnout.agent.explain import explain
from turnout.agent.loop import LoopStrategy
from turnout.agent.repair import RepairStrategy
from turnout.agent.review import ReviewSubject, review
from turnout.agent.tools.surfaces import surface_of
from turnout.core.clock import Clock, SystemClock
from turnout.core.events import Event
from turnout.core.observe.spans import SpanSink
from turnout.core.receipts import Receipt
from turnout.core.runs import TestReport
from turnout.core.tasks import SurfaceName
from turnout.errors import ModelUnavailableError, TurnoutError
from turnout.gateway.access import Authenticate, open_access
from turnout.gateway.catalog import Provider
from turnout.gateway.evidence import Snapshot
from turnout.gateway.measure.settle import discover
from turnout.gateway.observe.spans import span_of
from turnout.gateway.providers.http import HttpUpstream
from turnout.gateway.server import serve
from turnout.localmodel.models import find_installed, models_folder
from turnout.runs.observe.watching import RunWatch
from turnout.runs.owners import FileOwners, close_abandoned
from turnout.runs.ports import Explanation, ModelAccess, Report, StrategyName
from turnout.runs.service import RunService
from turnout.runs.worker import Effort, Workshop
from turnout.sandbox.base import Sandbox, SandboxDriver
from turnout.sandbox.repository import resolve
from turnout.sandbox.setup.manifests import changed_manifests, may_declare
from turnout.sandbox.steering.read import read_steering
from turnout.sandbox.testrun import TestPaths, detect_test_command, list_test_files, run_tests
from turnout.sandbox.workspace.history import compare
from turnout.settings import Endpoint, Settings
from turnout.store.database import Database, open_database
from turnout.store.record import RecordStore
from turnout.wiring.connections import open_servers
from turnout.wiring.gateway import access_for, app_of, ground_of, site_of
from turnout.wiring.sandboxes import check_egress, open_sandboxes, run_egress
from turnout.wiring.sources import (
    NO_MODEL,
    check_names,
    choose,
    known_catalog,
    provider_of,
    unlisted,
)
from turnout.wiring.state import database_of, state_folder_of
from turnout.wiring.traces import open_traces

__all__ = [
    "ModelSource",
    "examine_models",
    "list_models",
    "open_service",
    "workshop_of",
]

_EXAMINED_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A place that models come from, and whether it can be used."""

    name: str
    ok: bool
    detail: str
    mend: str = ""
    needed: bool = True
    """Whether a run would use it."""


@asynccontextmanager
async def open_service(settings: Settings, report: Report) -> AsyncIterator[RunService]:
    """Open the service on this machine: record, sandboxes, and models at the first run.

    What services that died have left behind is cleared away first; living ones are not touched.
    """
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        check_egress(settings)
        database = await stack.enter_async_context(open_database(database_of(settings)))
        driver = await stack.enter_async_context(open_sandboxes(settings))
        workshop = workshop_of(settings, driver, clock)
        store = RecordStore(database, settings.redactor)
        await close_abandoned(store, workshop.owners, clock)
        traces = await open_traces(settings.observe, stack, report)
        models = _Models(settings, database, clock, stack, traces)
        sinks = () if traces is None else (traces,)
        watch = RunWatch(store, sinks, content=settings.observe.content)
        await stack.enter_async_context(watch)
        yield RunService(store, workshop, models, resolve, report, watch.entry)


def workshop_of(settings: Settings, driver: SandboxDriver, clock: Clock) -> Workshop:
    """Return what runs are worked on with."""
    return Workshop(
        driver=driver,
        agent=_Agent(settings.agent, clock),
        suite=_Suite(settings.agent.own_test_timeout, settings.test_paths),
        limits=settings.limits,
        clock=clock,
        owners=FileOwners(settings.home / "running"),
        egress=partial(run_egress, settings),
        effort=_effort(settings.agent),
        test_paths=settings.test_paths,
        rates=settings.rates,
        redactor=settings.redactor,
        compare=partial(compare, state_dir=state_folder_of(settings)),
    )


async def list_models(endpoint: Endpoint, *, seconds: float) -> tuple[str, ...]:
    """Return the models that an endpoint lists; empty where it does not answer in time."""
    async with HttpUpstream(SystemClock()) as upstream:
        try:
            async with asyncio.timeout(seconds):
                return await discover(upstream, provider_of(endpoint, connect_timeout=seconds))
        except (ModelUnavailableError, TimeoutError):
            return ()


async def examine_models(settings: Settings) -> Sequence[ModelSource]:
    """Find out whether the models that the settings name can be reached and used, at no cost."""
    local = _examine_local(settings)
    if settings.catalog.deployments:
        used = {d.provider for d in settings.catalog.deployments}
        providers = [p for name, p in settings.catalog.providers.items() if name in used]
    elif settings.endpoint is not None:
        providers = [provider_of(settings.endpoint)]
    elif local.ok:
        return [replace(local, needed=True), await _examine_choice(settings)]
    else:
        return [ModelSource("any", False, "no model is configured", NO_MODEL), local]
    async with HttpUpstream(SystemClock()) as upstream:
        asked = await asyncio.gather(*(_examine(upstream, p) for p in providers))
        doubt = await unlisted(settings, upstream)
    enough = any(source.ok for source in asked)
    sources = [replace(source, needed=source.ok or not enough) for source in asked]
    if doubt:
        mend = "Set LLM_MODEL to one of them, unless the server takes other names too."
        sources.append(ModelSource("listed", False, doubt, mend, needed=False))
    return [*sources, *([await _examine_choice(settings)] if enough else []), local]


async def _examine_choice(settings: Settings) -> ModelSource:
    """Find out whether the policy lets any model work on a run; tool support is not tried out."""
    name = "choice"
    try:
        async with HttpUpstream(SystemClock()) as upstream:
            catalog = await known_catalog(settings, upstream)
        check_names(settings, catalog)
        hopeful = tuple(
            replace(d, tools="confirmed") if d.tools == "unknown" else d
            for d in catalog.deployments
        )
        strategy = choose(settings, replace(catalog, deployments=hopeful), Snapshot())
    except TurnoutError as error:
        return ModelSource(name, False, error.message, error.mend)
    untried = hopeful != catalog.deployments
    later = "; whether it calls tools is tried out at first use" if untried else ""
    return ModelSource(name, True, f"a model may work under the policy ({strategy}){later}")


def _examine_local(settings: Settings) -> ModelSource:
    installed = find_installed(models_folder(settings.home))
    name = "local"
    if installed is None:
        return ModelSource(name, False, "not fetched", "Run `turnout models pull`.", needed=False)
    if importlib.util.find_spec("xllamacpp") is None:
        detail = f"{installed.model.name} is there, the package xllamacpp is not"
        return ModelSource(name, False, detail, "Run `pip install 'turnout[local]'`.", needed=False)
    return ModelSource(name, True, installed.model.name, needed=False)


async def _examine(upstream: HttpUpstream, provider: Provider) -> ModelSource:
    if provider.unset_key:
        unset = f"{provider.unset_key} is not set"
        return ModelSource(provider.name, False, unset, f"Export {provider.unset_key}.")
    if provider.account is not None:
        # Cloud accounts list no models, and anything else would cost money.
        reached = f"{provider.base_url}, by an account of {provider.account.kind}; not tried"
        return ModelSource(provider.name, True, reached)
    try:
        async with asyncio.timeout(_EXAMINED_SECONDS):
            names = await discover(upstream, provider)
    except ModelUnavailableError as error:
        return ModelSource(provider.name, False, error.message, error.mend)
    except TimeoutError:
        detail = f"{provider.base_url} did not answer within {_EXAMINED_SECONDS:.0f} s"
        return ModelSource(provider.name, False, detail, "Check the address and the network.")
    listed = "1 model" if len(names) == 1 else f"{len(names)} models"
    return ModelSource(provider.name, True, f"{provider.base_url} has {listed}")


def _effort(config: AgentConfig) -> Effort:
    return Effort(
        attempts=config.attempts,
        escalate_after=config.escalate_after,
        objective=config.steps["act"].objective,
        review=config.review,
        max_spend=config.max_spend,
        max_seconds=config.max_seconds,
    )


class _Agent:
    """The strategies of the agent room."""

    def __init__(self, config: AgentConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._servers = open_servers(config, clock)

    def strategy(
        self, name: StrategyName, client: ModelClient, sandbox: Sandbox, approver: Approver
    ) -> Strategy:
        if name != "loop":
            branches = name == "branch"
            return RepairStrategy(client, sandbox, self._config, self._clock, branches=branches)
        return LoopStrategy(
            client,
            sandbox,
            self._config,
            self._clock,
            approver=approver,
            servers=self._servers,
        )

    def writes(self, surface: SurfaceName, tool: str) -> bool:
        found = surface_of(surface, self._config.extra_tools).find(tool)
        return found is None or found.writes

    def review(
        self,
        client: ModelClient,
        sandbox: Sandbox,
        subject: ReviewSubject,
        approver: Approver,
        record: Iterable[Event] = (),
    ) -> AsyncIterator[Event]:
        return review(client, sandbox, self._config, self._clock, subject, approver, record)

    def explain(self, client: ModelClient, subject: Explanation) -> AsyncIterator[Event]:
        return explain(
            client,
            self._config,
            run_id=subject.run_id,
            step=subject.step,
            prompt=subject.prompt,
            patch=subject.patch,
            tests_after=subject.tests_after,
        )


class _Suite:
    """The tests of a workspace, as the sandbox room finds and runs them."""

    def __init__(self, timeout: float, paths: TestPaths) -> None:
        self._timeout = timeout
        self._paths = paths

    async def command(self, sandbox: Sandbox) -> str | None:
        return await detect_test_command(sandbox)

    async def files(self, sandbox: Sandbox) -> tuple[str, ...]:
        return await list_test_files(sandbox, self._paths)

    async def steering(
        self, sandbox: Sandbox, command: str, paths: Iterable[str]
    ) -> Mapping[str, str | None]:
        return await read_steering(sandbox, command, paths, self._paths)

    def may_declare(self, paths: Iterable[str]) -> bool:
        return may_declare(paths)

    async def manifests(
        self, sandbox: Sandbox, paths: Iterable[str]
    ) -> tuple[tuple[str, str], ...]:
        return await changed_manifests(sandbox, paths)

    async def run(self, sandbox: Sandbox, command: str) -> TestReport:
        return await run_tests(sandbox, command, timeout=self._timeout)


class _Models:
    """Models behind a gateway of our own on a private socket, opened at first use."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        clock: Clock,
        stack: AsyncExitStack,
        traces: SpanSink | None,
    ) -> None:
        self._settings = settings
        self._database = database
        self._clock = clock
        self._stack = stack
        self._opening = asyncio.Lock()
        self._traces = traces
        self._access: ModelAccess | None = None

    async def open(self, report: Report) -> ModelAccess:
        async with self._opening:
            if self._access is None:
                self._access = await self._open(report)
            return self._access

    async def _open(self, report: Report) -> ModelAccess:
        stack = self._stack
        ground = await ground_of(self._settings, self._database, self._clock, stack)
        site = await site_of(ground, report, "absent", on_receipt=self._saw)
        access_by = access_for(ground.settings, site)
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="turnout-"))
        uds = Path(folder) / "gateway.sock"
        bound = await stack.enter_async_context(serve(app_of(site, _private()), uds=uds))
        client = HttpModelClient(
            base_url=f"{bound.base_url}/v1", uds=uds, api_key="", clock=self._clock
        )
        await stack.enter_async_context(client)
        return access_by(client)

    def _saw(self, receipt: Receipt) -> None:
        if self._traces is not None:
            self._traces.take([span_of(receipt)])


def _private() -> Authenticate:
    """Admit whoever reaches the socket: its folder is closed to all other users."""
    return open_access(name="agent")
