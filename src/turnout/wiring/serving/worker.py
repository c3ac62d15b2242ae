"""A process that works on runs and serves nobody; models are those of a gateway elsewhere."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from turnout.core.clock import SystemClock
from turnout.core.govern.happenings import Happening
from turnout.core.observe.news import news_of
from turnout.errors import ConfigError
from turnout.gateway.app import health_app
from turnout.gateway.notices.notices import Notices
from turnout.gateway.server import BoundAddress, serve
from turnout.runs.ports import Report
from turnout.settings import Settings, gateway_address
from turnout.store.database import open_database
from turnout.wiring.serving.durable import open_durable
from turnout.wiring.serving.gateway import is_loopback
from turnout.wiring.serving.models import open_remote_models
from turnout.wiring.serving.observing import OnRun, open_observing
from turnout.wiring.serving.outlets import open_outlets
from turnout.wiring.state import database_of
from turnout.wiring.usage import open_notices

__all__ = ["no_gateway", "open_worker", "telling"]


@asynccontextmanager
async def open_worker(
    settings: Settings, host: str, port: int, report: Report, on_run: OnRun
) -> AsyncIterator[BoundAddress]:
    """Work on what is ordered; the address says whether this process lives and can work.

    `ConfigError` where no gateway is named, `ModelUnavailableError` where it refuses this
    worker's key.
    """
    gateway = gateway_address()
    if gateway is None:
        raise no_gateway()
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(database_of(settings)))
        notices = await stack.enter_async_context(open_notices(database, clock))
        models = await open_remote_models(gateway, clock, report, stack)
        opening = open_observing(settings, database, clock, report)
        observing = await stack.enter_async_context(opening)
        told = telling(notices, observing.telling(on_run))
        outlets = await stack.enter_async_context(
            open_outlets(settings, database, clock, publishes=True, told=told)
        )
        durable = await stack.enter_async_context(
            open_durable(
                settings, database, clock, models.of, tell=outlets.tell, saw=observing.entry
            )
        )
        app = health_app(lambda: durable.engine.healthy)
        app = observing.alone(app, private=is_loopback(host))
        yield await stack.enter_async_context(serve(app, host=host, port=port))


def telling(notices: Notices, on_run: OnRun) -> Callable[[Happening], None]:
    """Return what tells whoever looks on what becomes of runs, and has the webhooks told of it.

    That it has happened is in the store already, with whom it has still to be told.
    """

    def told(happening: Happening) -> None:
        on_run(news_of(happening))
        notices.wake()

    return told


def no_gateway() -> ConfigError:
    """Return the refusal of a worker that nobody has told where its gateway is."""
    return ConfigError(
        "TURNOUT_GATEWAY is not set, and this process serves no gateway of its own.",
        mend="Set it to the address of `turnout serve --roles api,gateway`, and "
        "TURNOUT_GATEWAY_KEY to a key of the role `worker`.",
    )
