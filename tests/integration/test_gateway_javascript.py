"""The npm client, unmodified, in programs that are type-checked as well."""

import asyncio
import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from turnout.core.money import Price
from turnout.core.policies import Policy, SessionCaps
from turnout.gateway.access import shared_key
from turnout.gateway.catalog import StatedQuality
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, RunningGateway, catalog_at, running_gateway
from turnout.testing.model_server import Call, ScriptedModelServer, Turn

pytestmark = pytest.mark.clients

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "tests/javascript"
FILES = ("package.json", "package-lock.json", "tsconfig.json", "programs.ts")
KEY = "js-key"
STRONG = replace(
    deployment("p/strong"),
    price=Price(1_000_000, 2_000_000),
    quality={"coding": StatedQuality(0.8, "stated")},
    stated_ttft_ms=5_000,
    stated_tokens_per_second=15,
)
FAST = replace(
    deployment("p/fast"),
    price=Price(1_000_000, 2_000_000),
    quality={"coding": StatedQuality(0.3, "stated")},
    stated_ttft_ms=80,
    stated_tokens_per_second=300,
)
READ = Call("read_file", {"path": "src/dates.py"})


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the programs, with the packages that npm hands out."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    folder = tmp_path_factory.mktemp("javascript")
    for name in FILES:
        shutil.copy(SOURCES / name, folder)
    installed = _run(folder, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
    if installed.returncode != 0:
        pytest.skip(f"npm could not install the client: {installed.stderr[-300:]}")
    checked = _run(folder, "node", "node_modules/typescript/bin/tsc")
    assert checked.returncode == 0, checked.stdout
    return folder / "programs.js"


def _run(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, check=False, cwd=folder, capture_output=True, text=True, timeout=240
    )


async def _program(compiled: Path, gateway: RunningGateway, name: str) -> Any:
    """Run one program; return the object that it prints."""
    base_url = f"{gateway.base_url.removesuffix('/v1')}/api/v1/inference"
    argv = ("node", str(compiled), name, base_url, KEY)
    process = await asyncio.create_subprocess_exec(
        *argv, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, err.decode()
    return json.loads(out)


def _guarded(policy: Policy | None = None) -> GatewaySetup:
    return GatewaySetup(policy=policy or Policy(), authenticate=shared_key(KEY))


async def test_a_typescript_program_plans_on_one_model_and_acts_on_another(compiled: Path) -> None:
    """The loop of the guide: named by no model, kept by one session."""
    scripts = {"strong": [Turn("Read.")], "fast": [Turn(calls=(READ,)), Turn("rows is empty.")]}
    async with (
        ScriptedModelServer(scripts) as server,
        running_gateway(catalog_at(server.base_url, STRONG, FAST), _guarded()) as gateway,
    ):
        said = await _program(compiled, gateway, "planThenAct")
        assert gateway.receipt().session == "run-7"
    assert said == {"plan": "strong", "steps": ["fast", "fast"], "answer": "rows is empty."}


async def test_the_package_puts_streamed_calls_together(compiled: Path) -> None:
    """By their index, with one finish reason and one count."""
    script = [Turn("Look.", calls=(READ, Call("read_file", {"path": "b"})))]
    async with (
        ScriptedModelServer(script) as server,
        running_gateway(catalog_at(server.base_url, FAST), _guarded()) as gateway,
    ):
        said = await _program(compiled, gateway, "streamCalls")
        assert said["id"] == gateway.receipt().request_id
    assert (said["content"], said["finish"]) == ("Look.", "tool_calls")
    paths = [json.loads(arguments)["path"] for _, arguments in said["calls"]]
    assert paths == ["src/dates.py", "b"]
    assert said["tokens"] > 0


async def test_a_stream_that_breaks_raises_in_the_package(compiled: Path) -> None:
    """What came is kept; the end is an error, not a stop."""
    async with (
        ScriptedModelServer([Turn("Hello, you there.", fault="cut")]) as server,
        running_gateway(catalog_at(server.base_url, FAST), _guarded()) as gateway,
    ):
        said = await _program(compiled, gateway, "streamThatBreaks")
    assert said["said"]
    assert said["raised"]


async def test_the_package_does_not_retry_at_a_cap(compiled: Path) -> None:
    """It would, for any other 429."""
    policy = Policy(session=SessionCaps(max_requests=1))
    async with (
        ScriptedModelServer([Turn("Hello."), Turn("Hello.")]) as server,
        running_gateway(catalog_at(server.base_url, FAST), _guarded(policy)) as gateway,
    ):
        said = await _program(compiled, gateway, "capped")
        assert len(gateway.receipts.receipts) == 2
    assert said == {"status": 429, "code": "session_request_cap"}


async def test_the_package_lists_models_and_continues_responses(compiled: Path) -> None:
    """The two routes that are read most beside chat."""
    async with (
        ScriptedModelServer([Turn("Hello."), Turn("Hello again.")]) as server,
        running_gateway(catalog_at(server.base_url, FAST), _guarded()) as gateway,
    ):
        listed = await _program(compiled, gateway, "listModels")
        said = await _program(compiled, gateway, "continueResponse")
    assert listed == {"names": ["auto", "fast"]}
    assert said == {"said": "Hello again.", "continues": True}
