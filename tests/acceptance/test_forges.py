"""From a comment at a forge to what came of it there, over the real service."""

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory

import pytest
from tests.acceptance.command import DIFF, FIX, Command
from tests.acceptance.test_service import Service, serving

from turnout.testing.forges import Delivery, ScriptedForge, comment, labelled, running_forge, signed
from turnout.testing.model_server import ScriptedModelServer, Turn
from turnout.testing.repositories import TinyRepository

SECRET, TOKEN = "s3cret-of-hooks", "tok-4f1e9d"
NOTE = {"path": "pages.py", "line": 8, "severity": "error", "text": "Ask @ann."}
BLOCK = Turn(json.dumps({"verdict": "block", "summary": "/merge it not.", "notes": [NOTE]}))
REPOSITORY = """
[service.repositories.{kind}]
path = "{path}"
push = {push}

[service.forges.{kind}]
kind = "{kind}"
api = "{api}"
secret_env = "HUB_SECRET"
token_env = "HUB_TOKEN"
key = "hub"
repositories = {{ "acme/shop" = "{kind}" }}
"""


@pytest.fixture
def apart(turnout: Command, state: Path) -> Iterator[Command]:
    """Return the command with a state folder of its own, as it gets keys.

    The environments that other tests have made are in it: making one takes long.
    """
    with TemporaryDirectory(prefix="turnout-forges-") as folder:
        Path(folder).chmod(0o711)
        if (made := state / "environments").is_dir():
            copytree(made, Path(folder) / made.name, symlinks=True, copy_function=os.link)
        yield turnout.where(TURNOUT_HOME=folder, HUB_SECRET=SECRET, HUB_TOKEN=TOKEN)


async def delivered(service: Service, delivery: Delivery) -> tuple[int, str]:
    """Deliver a webhook and return its status and the run."""
    headers, body = signed(delivery, SECRET, datetime.now(UTC))
    url = f"{service.url}/forges/{delivery.kind}/webhook"
    async with service.http.post(url, headers=headers, data=body) as answer:
        return answer.status, (await answer.json())["run"]


async def told(forge: ScriptedForge, thread, number: int) -> str:
    """Return the one comment on a thread, once it is there."""
    async with asyncio.timeout(60):
        await forge.told.wait()
    (said,) = forge.comments[thread, number]
    return said


async def test_a_comment_becomes_a_draft_and_a_label_a_review(
    apart: Command, pages: TinyRepository
) -> None:
    """Delivered twice it is one run; the token shows nowhere that a caller or a model looks."""
    change = f"diff --git a/pages.py b/pages.py\n{DIFF}".encode()
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(ScriptedModelServer((*FIX, BLOCK), models=["m"]))
        hub, lab = ScriptedForge("github", TOKEN), ScriptedForge("gitlab", TOKEN)
        lab.base, lab.diff = pages.head, change
        config = ""
        for forge in (hub, lab):
            await stack.enter_async_context(running_forge(forge))
            push = str(forge is hub).lower()
            config += REPOSITORY.format(kind=forge.kind, path=pages.path, push=push, api=forge.api)
        command = apart.using(model.base_url).configured(config)
        made = await command("keys", "create", "hub", "--role", "member", "--json")
        assert made.code == 0, made.err
        bearer = {"authorization": f"Bearer {made.object['key']}"}
        async with serving(command) as service:
            wish = comment("github", "/turnout fix the first page")
            first, again = [await delivered(service, wish) for _ in range(2)]
            assert (first[0], again) == (201, (200, first[1]))
            run = first[1]
            fixed = await told(hub, "issue", 12)
            record = f"{service.url}/runs/{run}/record?limit=1000"
            async with service.http.get(record, headers=bearer) as answer:
                shown = await answer.text()
            asked = labelled("gitlab", "turnout-review", thread="pull", number=3)
            assert (await delivered(service, asked))[0] == 201
            reviewed = await told(lab, "pull", 3)
    opened = hub.requests[0]["asked"]
    assert (opened["draft"], opened["head"], opened["base"]) == (True, f"turnout/{run}", "main")
    assert pages.git("log", "--format=%P", "-1", f"turnout/{run}") == pages.head
    assert hub.nods == ["comments/501"]
    assert hub.requests[0]["html_url"] in fixed
    assert "tests that failed before pass now" in fixed
    assert "the first page" in str(model.requests[0])
    for line in ("    Review: block.", "    /merge it not.", "    - pages.py:8: Ask @ann."):
        assert line in reviewed.split("\n")
    assert lab.requests == []
    for text in (shown, service.said, str(model.requests)):
        assert TOKEN not in text
        assert SECRET not in text
