"""Who reads the metrics, and what they say of the whole service."""

import re
from collections.abc import Mapping
from datetime import datetime

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from tests.house.sources import ROOT
from tests.unit.core.observe.test_metrics import read

from turnout.core.observe.metrics import CONTENT_TYPE, Metrics
from turnout.core.observe.standing import ServiceStanding
from turnout.errors import GatewayError, StoreError
from turnout.gateway.access import sent_key
from turnout.gateway.exchange import Caller
from turnout.gateway.observe.counting import RequestMetrics
from turnout.runs.observe.counting import RunMetrics
from turnout.testing.clock import FrozenClock
from turnout.web.observe.exposition import Exposition, Readers, ServiceMetrics, with_metrics
from turnout.web.observe.process import ProcessMetrics
from turnout.web.queue.counting import QueueMetrics


class Standings:
    """A database that knows how the service stands, or is away."""

    def __init__(self) -> None:
        self.looks = 0
        self.away = False

    async def standing(self, now: datetime, *, stale: float) -> ServiceStanding:
        """Return it."""
        self.looks += 1
        if self.away:
            raise StoreError("It is away.")
        return ServiceStanding({"queued": 3, "running": 1, "waiting": 0}, 12.5, 2)


def authenticate(headers: Mapping[str, str]) -> Caller:
    """Admit an admin and a member."""
    callers = {"boss": Caller("boss", admin=True), "member": Caller("member", role="member")}
    caller = callers.get(sent_key(headers))
    if caller is None:
        raise GatewayError("The API key is wrong.", status=401, code="invalid_api_key")
    return caller


class Served:
    """The metrics of a service, beside its other routes."""

    def __init__(self, *, key: str = "", opened: bool = False) -> None:
        self.metrics, self.database, self.clock = Metrics(), Standings(), FrozenClock()
        service = ServiceMetrics(self.metrics, self.database, self.clock)
        process = ProcessMetrics(self.metrics, "1.2")
        readers = Readers(authenticate, lambda: opened, key)
        shown = Exposition(self.metrics, readers, service, process.look)
        self.http = TestClient(with_metrics(Starlette(), shown))

    def get(self, key: str):
        """Read the metrics with a key."""
        return self.http.get("/metrics", headers={"authorization": f"Bearer {key}"})


def test_metrics_say_how_the_service_stands_over_all_processes() -> None:
    """And what this process takes of its machine."""
    served = Served()
    answer = served.get("boss")
    assert (answer.status_code, answer.headers["content-type"]) == (200, CONTENT_TYPE)
    found = read(served.metrics)
    assert answer.text == served.metrics.text()
    assert found[("turnout_runs", (("state", "queued"),))] == 3
    assert found[("turnout_queue_oldest_seconds", ())] == 12.5
    assert found[("turnout_workers", ())] == 2
    assert found[("turnout_database_up", ())] == 1
    assert found[("turnout_build_info", (("version", "1.2"),))] == 1
    assert found[("process_resident_memory_bytes", ())] > 1_000_000
    assert found[("process_open_fds", ())] > 0
    assert found[("process_cpu_seconds_total", ())] > 0


@pytest.mark.parametrize(
    ("key", "status"), [("boss", 200), ("scraper", 200), ("member", 403), ("wrong", 401), ("", 401)]
)
def test_admins_read_the_metrics_and_whoever_has_their_key(key: str, status: int) -> None:
    """They are of all projects together: keys of a project are refused."""
    served = Served(key="scraper")
    assert served.get(key).status_code == status
    assert served.database.looks == (1 if status == 200 else 0)


def test_while_there_never_was_a_key_whoever_is_admitted_reads_them() -> None:
    """As programs of this machine do."""
    assert Served(opened=True).get("member").status_code == 200
    assert Served(opened=True).get("wrong").status_code == 401


def test_the_database_is_asked_once_a_second_at_most() -> None:
    """However many read, and however often."""
    served = Served()
    for _ in range(5):
        served.get("boss")
    assert served.database.looks == 1
    served.clock.advance(1.0)
    served.get("boss")
    assert served.database.looks == 2


def test_a_database_that_is_away_is_said_and_nothing_old_is_shown() -> None:
    """The metrics of this process are read all the same."""
    served = Served()
    served.get("boss")
    served.database.away = True
    served.clock.advance(5.0)
    assert served.get("boss").status_code == 200
    found = read(served.metrics)
    assert found[("turnout_database_up", ())] == 0
    assert not any(name == "turnout_runs" for name, _ in found)


def test_other_paths_and_methods_are_none_of_the_metrics() -> None:
    """Nothing but reading is served there."""
    served = Served()
    assert served.http.post("/metrics").status_code == 405
    assert served.http.get("/metrics/x").status_code == 404


def test_the_page_names_every_metric_that_is_served_and_no_other() -> None:
    """Whoever makes a dashboard finds them all there."""
    served = Served()
    RunMetrics(served.metrics, served.clock)
    RequestMetrics(served.metrics)
    QueueMetrics(served.metrics)
    told = set(re.findall(r"^# TYPE (\w+) ", served.metrics.text(), re.MULTILINE))
    page = (ROOT / "docs/reference/telemetry.md").read_text()
    tables = page.partition("## Metrics")[2].partition("## Spans")[0]
    columns = [line.split("|")[1] for line in tables.splitlines() if line.startswith("| `")]
    assert set(re.findall(r"`(\w+)`", "".join(columns))) == told
