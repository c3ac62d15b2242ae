"""Lets what is written to logs while a run is worked on say which run that is."""

from turnout.core.observe.working import Working, working_on
from turnout.core.service.orders import OrderedRun
from turnout.runs.durable.engine import Work
from turnout.runs.stop import Stop

__all__ = ["tagged"]


def tagged(work: Work) -> Work:
    """Return work that says what it works on."""

    async def known(run: OrderedRun, stop: Stop) -> None:
        with working_on(Working(run.run_id, run.order.project, run.order.key)):
            await work(run, stop)

    return known
