"""A service that is watched over: its traces, metrics and logs of a run that it works on."""

import asyncio
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest
from starlette.applications import Starlette
from tests.unit.web.observe.collector import Collector, attributes

from turnout.cli.gateway.lines import JsonLines
from turnout.cli.gateway.request_log import RequestLog
from turnout.core.clock import SystemClock
from turnout.core.events import Entry
from turnout.core.ids import RunId
from turnout.core.observe.options import ObserveOptions
from turnout.core.observe.spans import run_span
from turnout.core.tasks import Task
from turnout.errors import ConfigError
from turnout.gateway.server import serve
from turnout.settings import Settings, load_settings
from turnout.store.database import open_database
from turnout.testing.fleet.counting import Counting
from turnout.testing.model_server import ScriptedModelServer
from turnout.testing.repositories import TinyRepository
from turnout.wiring.rooms import open_service
from turnout.wiring.serving.observing import open_observing
from turnout.wiring.serving.service import Served, open_serving

ORDER = {"task": "Count to 2.", "repo": "tiny", "surface": "shell", "requirements": []}


class Place(NamedTuple):
    """Where a service is."""

    repository: Path
    folder: Path
    state: Path

    def settings(self, model: ScriptedModelServer, collector: Collector) -> Settings:
        """Return settings under which traces are sent to a collector."""
        config = self.folder / "turnout.toml"
        config.write_text(
            f"[service.repositories]\ntiny = {json.dumps(str(self.repository))}\n"
            '[observe]\npropagate = true\nmetrics_key_env = "SCRAPER"\n'
        )
        environment = {
            "TURNOUT_HOME": str(self.state),
            "TURNOUT_DATABASE": f"sqlite:///{self.folder}/turnout.db",
            "LLM_BASE_URL": model.base_url,
            "LLM_MODEL": "m",
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.base_url.removesuffix("/v1"),
            "OTEL_EXPORTER_OTLP_HEADERS": "x-team=blue%20one",
            "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
        }
        return load_settings(config=config, environment=environment)


@pytest.fixture
def place(tmp_path: Path, sandbox_state: Path) -> Place:
    """Make a repository, and a database of its own; what sandboxes begin with is shared."""
    return Place(TinyRepository(tmp_path / "tiny", {"a.txt": "a\n"}).path, tmp_path, sandbox_state)


async def worked_on(url: str, http: aiohttp.ClientSession) -> RunId:
    """Order a run, follow it to its end, and return its id."""
    async with http.post(f"{url}/v1/runs", json=ORDER) as answer:
        assert answer.status == 201, await answer.text()
        run_id = RunId((await answer.json())["id"])
    async with asyncio.timeout(60), http.get(f"{url}/v1/runs/{run_id}/events") as answer:
        await answer.read()
    return run_id


async def test_a_run_is_one_trace_through_agent_gateway_and_provider(
    place: Place, monkeypatch
) -> None:
    """Its metrics are read with their own key, and its log lines name it."""
    monkeypatch.setenv("SCRAPER", "scraper-key")
    stream, models = io.StringIO(), ScriptedModelServer(Counting(), models=["m"])
    async with models, Collector() as collector, aiohttp.ClientSession() as http:
        settings = place.settings(models, collector)
        with RequestLog(stream, JsonLines()) as log:
            async with open_serving(
                settings,
                Served("127.0.0.1", 0),
                lambda _: None,
                on_receipt=log.note,
                on_run=log.tell,
            ) as service:
                run_id = await worked_on(service.base_url, http)
                key = {"authorization": "Bearer scraper-key"}
                async with http.get(f"{service.base_url}/metrics", headers=key) as answer:
                    assert answer.status == 200
                    text = await answer.text()
    check_trace(run_id, collector, [r.headers["traceparent"] for r in models.requests])
    check_metrics(text)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    events = [line["event"] for line in lines if line.get("run_id") == run_id]
    assert events == ["run.ordered", "run.started", "run.ended"]
    assert {line["session"] for line in lines if line["event"] == "request"} == {run_id}


async def test_a_run_of_the_command_line_is_a_trace_likewise(place: Place) -> None:
    """Its own gateway is in it, and all is sent before the command ends."""
    models = ScriptedModelServer(Counting(), models=["m"])
    task = Task("Count to 2.", str(place.repository), surface="shell", requirements=())
    async with models, Collector() as collector:
        settings = place.settings(models, collector)
        async with open_service(settings, lambda _: None) as service, asyncio.timeout(60):
            entries = [entry async for entry in service.run(task) if isinstance(entry, Entry)]
    providers = [request.headers["traceparent"] for request in models.requests]
    check_trace(entries[0].run_id, collector, providers)


def keyed(folder: Path) -> Settings:
    """Return settings that name a key for the metrics, and nothing else."""
    (folder / "turnout.toml").write_text('[observe]\nmetrics_key_env = "SCRAPER"\n')
    return load_settings(environment={"TURNOUT_HOME": str(folder)}, directory=folder)


@pytest.mark.parametrize(
    ("private", "key", "status"),
    [(True, "", 200), (False, "", 401), (False, "wrong", 401), (False, "scraper-key", 200)],
)
async def test_a_worker_alone_shows_its_metrics_to_their_key_or_to_its_own_machine(
    tmp_path: Path, monkeypatch, private: bool, key: str, status: int
) -> None:
    """It knows no other keys."""
    monkeypatch.setenv("SCRAPER", "scraper-key")
    settings = keyed(tmp_path)
    async with (
        open_database(tmp_path / "turnout.db") as database,
        open_observing(settings, database, SystemClock(), lambda _: None) as observing,
        serve(observing.alone(Starlette(), private=private), host="127.0.0.1") as bound,
        aiohttp.ClientSession(headers={"authorization": f"Bearer {key}"}) as http,
        http.get(f"{bound.base_url}/metrics") as answer,
    ):
        assert answer.status == status
        assert ("turnout_database_up 1\n" in await answer.text()) == (status == 200)


async def test_a_key_for_the_metrics_that_is_not_set_is_said_at_the_start(tmp_path: Path) -> None:
    """So is a place for traces that does not fit, which stops nothing."""
    settings, said = keyed(tmp_path), list[str]()
    async with open_database(tmp_path / "turnout.db") as database:
        with pytest.raises(ConfigError, match="SCRAPER is not set"):
            async with open_observing(settings, database, SystemClock(), said.append):
                pytest.fail("It was opened.")
        doubt = ObserveOptions(traces_doubt="it is odd")
        unfit = replace(settings, observe=doubt)
        async with open_observing(unfit, database, SystemClock(), said.append) as observing:
            assert observing.traces is None
    assert said == ["No traces are sent: it is odd."]


def check_trace(run_id: RunId, collector: Collector, providers: list[str]) -> None:
    """Check that all spans are of the run's trace, and each below the one it is part of."""
    spans, trace = collector.spans, run_span(run_id).trace_id
    assert {span.trace_id.hex() for span in spans} == {trace}
    by_id = {span.span_id.hex(): span for span in spans}
    assert len(by_id) == len(spans)
    names = [span.name for span in spans]
    assert names.count("invoke_agent turnout") == 1
    assert names.count("chat m") == names.count("chat auto") == len(providers)
    assert names.count("execute_tool run") == 2
    above = {
        span.name: by_id[span.parent_span_id.hex()].name for span in spans if span.parent_span_id
    }
    assert above["chat m"] == "chat auto"
    assert above["chat auto"].startswith("step ")
    assert above["execute_tool run"] == above.get("checkpoint", "step act") == "step act"
    assert above["step act"] == above["workspace"] == "invoke_agent turnout"
    servers = {f"00-{trace}-{s.span_id.hex()}-01" for s in spans if s.name == "chat m"}
    assert set(providers) == servers
    assert "Count to" not in str([attributes(span.attributes) for span in spans])
    assert collector.headers[0]["x-team"] == "blue one"


def check_metrics(text: str) -> None:
    """Check what a run of two writing steps leaves behind."""
    for line in (
        'turnout_segments_started_total{begun="new"} 1',
        'turnout_runs_ended_total{outcome="answered"} 1',
        'turnout_runs{state="queued"} 0',
        "turnout_workers 1",
        "turnout_database_up 1",
        'turnout_record_entries_total{type="run_started"} 1',
        'gen_ai_execute_tool_duration_seconds_count{gen_ai_tool_name="run",error_type=""} 2',
    ):
        assert f"{line}\n" in text, line
    assert 'turnout_gateway_requests_total{api="chat",status="ok",http_status="200"}' in text
