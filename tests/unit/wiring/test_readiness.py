"""Whether a gateway says that work may come."""

from dataclasses import dataclass
from typing import Any

import pytest
from starlette.testclient import TestClient

from turnout.gateway.access import open_access
from turnout.wiring.gateway import Site, app_of


@dataclass
class WritingEngine:
    """One of which only that is known."""

    writable: bool


@pytest.mark.parametrize(("writable", "status"), [(True, 200), (False, 503)])
def test_a_gateway_that_cannot_write_receipts_wants_no_work(writable: bool, status: int) -> None:
    """Whether a worker is beside it or not."""
    nothing: Any = None
    engine: Any = WritingEngine(writable)
    site = Site(engine, nothing, nothing, nothing, nothing, nothing, nothing)
    client = TestClient(app_of(site, open_access()))
    assert client.get("/readyz").status_code == status
    assert client.get("/healthz").status_code == 200
