"""`/readyz`: whether work may come."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from turnout.gateway.access import open_access
from turnout.gateway.app import build_app
from turnout.gateway.wire.shapes import CHAT


@pytest.mark.parametrize(("ready", "status"), [(True, 200), (False, 503)])
def test_work_is_sent_elsewhere_while_it_may_not_come(ready: bool, status: int) -> None:
    """Nobody needs a key to know, and that the process is up is another question."""
    engine: Any = None
    app = build_app(engine, open_access(), {"chat": CHAT}, ready=lambda: ready)
    client = TestClient(app)
    assert client.get("/readyz").status_code == status
    assert client.get("/healthz").status_code == 200
