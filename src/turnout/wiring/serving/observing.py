"""What a process that serves tells those who watch over it."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from starlette.types import ASGIApp

from turnout import __version__
from turnout.core.clock import Clock
from turnout.core.events import Entry
from turnout.core.ids import RunId
from turnout.core.observe.metrics import Metrics
from turnout.core.observe.news import RunNews
from turnout.core.observe.spans import SpanSink
from turnout.core.receipts import Receipt
from turnout.errors import GatewayError
from turnout.gateway.access import Authenticate, open_access
from turnout.gateway.exchange import Caller
from turnout.gateway.keys.ring import KeyRing
from turnout.gateway.observe.counting import RequestMetrics
from turnout.gateway.observe.spans import span_of
from turnout.runs.observe.counting import RunMetrics
from turnout.runs.observe.watching import RunWatch
from turnout.runs.ports import Report
from turnout.settings import Settings, secret_named
from turnout.store.database import Database
from turnout.store.record import RecordStore
from turnout.store.watch import WatchStore
from turnout.web.observe.exposition import Exposition, Readers, ServiceMetrics, with_metrics
from turnout.web.observe.process import ProcessMetrics
from turnout.wiring.traces import open_traces

__all__ = ["Observing", "OnRun", "open_observing"]

OnRun = Callable[[RunNews], None]
"""Is told of what becomes of runs, and must not wait."""


@dataclass(frozen=True, slots=True)
class Observing:
    """Takes in what happens, at no cost that a run or a request would notice."""

    runs: RunMetrics
    requests: RequestMetrics
    watch: RunWatch
    traces: SpanSink | None
    """Where spans go; None: nowhere."""
    metrics: Metrics
    service: ServiceMetrics
    process: ProcessMetrics
    key: str
    """Opens the metrics and nothing else; empty: there is none."""

    def entry(self, entry: Entry) -> None:
        """Be told of an entry that this process has put on record."""
        self.runs.entry(entry)
        self.watch.entry(entry)

    def telling(self, on_run: OnRun) -> OnRun:
        """Return what tells `on_run`, after having been told."""

        def told(news: RunNews) -> None:
            # Its end may have been put on record by nobody's work.
            if news.event == "run.ended":
                self.watch.look(RunId(news.run_id))
            on_run(news)

        return told

    def receipt(self, receipt: Receipt) -> None:
        """Be told of a request of the gateway."""
        self.requests.saw(receipt)
        if self.traces is not None:
            self.traces.take([span_of(receipt)])

    def beside(self, app: ASGIApp, ring: KeyRing) -> ASGIApp:
        """Return an application that serves the metrics too, to admins and the key for them."""
        readers = Readers(ring.authenticate, lambda: ring.empty, self.key)
        return self._with_metrics(app, readers)

    def alone(self, app: ASGIApp, *, private: bool) -> ASGIApp:
        """Return the same for a process without keys; `private`: this machine alone reaches it."""
        admits: Authenticate = open_access() if private else _nobody
        return self._with_metrics(app, Readers(admits, lambda: private, self.key))

    def _with_metrics(self, app: ASGIApp, readers: Readers) -> ASGIApp:
        shown = Exposition(self.metrics, readers, self.service, self.process.look)
        return with_metrics(app, shown)


@asynccontextmanager
async def open_observing(
    settings: Settings, database: Database, clock: Clock, report: Report
) -> AsyncIterator[Observing]:
    """Watch over what this process does; at the end what waits to be told is told.

    `ConfigError` where the key for the metrics is named and not set.
    """
    options, metrics = settings.observe, Metrics()
    variable = options.metrics_variable
    key = "" if variable is None else secret_named(variable, what="the key for /metrics")
    async with AsyncExitStack() as stack:
        traces = await open_traces(options, stack, report)
        runs = RunMetrics(metrics, clock)
        sinks: Sequence[SpanSink] = [runs] if traces is None else [runs, traces]
        watch = RunWatch(RecordStore(database), sinks, content=options.content)
        await stack.enter_async_context(watch)
        yield Observing(
            runs,
            RequestMetrics(metrics),
            watch,
            traces,
            metrics,
            ServiceMetrics(metrics, WatchStore(database), clock),
            ProcessMetrics(metrics, __version__),
            key,
        )


def _nobody(headers: Mapping[str, str]) -> Caller:
    """Admit no key: that of the metrics is looked at before."""
    del headers
    raise GatewayError(
        "The key for the metrics is missing or wrong.",
        status=401,
        code="invalid_api_key",
        mend="Its variable is named by `metrics_key_env` under `[observe]`.",
    )
