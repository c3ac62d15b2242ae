import asyncio
import os
import signal
import sys
from pathlib import Path

import aiohttp
import pytest

from turnout.localmodel.models import find_installed, models_folder
from turnout.localmodel.serve import LocalServer
from turnout.settings import state_folder

pytestmark = pytest.mark.localmodel

PARENT = """
import asyncio, sys
from pathlib import Path
from turnout.localmodel.serve import LocalServer

async def main():
    async with LocalServer(Path(sys.argv[1])) as server:
        print(server.base_url, flush=True)
        await server.wait()

asyncio.run(main())
"""


@pytest.fixture
def path():
    """Return the file of the model that is on this machine."""
    found = find_installed(models_folder(state_folder()))
    assert found is not None, "fetch the model first: turnout models pull"
    return found.path


def children(pid: int) -> list[int]:
    """Return the processes that a process has started from its first thread."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(child) for child in found.split()]


async def child_of(pid: int) -> int:
    """Return the first process that a process starts, as soon as there is one."""
    for _ in range(600):
        if found := children(pid):
            return found[0]
        await asyncio.sleep(0.05)
    raise AssertionError("no child was started")


async def gone(pid: int) -> bool:
    """Whether a process ends within some seconds."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        await asyncio.sleep(0.1)
    return False


async def test_the_model_answers(path):
    """Under its name, with its usage, and from its prompt cache the second time."""
    question = "Reply with the one word: rail"
    async with LocalServer(path) as server, aiohttp.ClientSession() as session:
        body = {
            "model": server.model_name,
            "messages": [{"role": "user", "content": question}],
            "max_tokens": 8,
            "temperature": 0,
        }
        answers = []
        for _ in range(2):
            async with session.post(f"{server.base_url}/chat/completions", json=body) as reply:
                answers.append(await reply.json())
    assert "rail" in answers[0]["choices"][0]["message"]["content"].lower()
    assert answers[0]["usage"]["completion_tokens"] > 0
    assert answers[1]["usage"]["prompt_tokens_details"]["cached_tokens"] > 0


async def test_the_model_tells_its_second_thoughts_and_goes_on_with_one(path):
    """Of every token: what `profile = "branch"` lives on."""
    asked = [{"role": "user", "content": "Reply with one line of Python: the sum of a and b."}]
    body = {"max_tokens": 16, "temperature": 0, "logprobs": True, "top_logprobs": 3}
    async with LocalServer(path) as server, aiohttp.ClientSession() as session:
        url = f"{server.base_url}/chat/completions"
        begun = [*asked, {"role": "assistant", "content": "```python\nresult = a *"}]
        answers = []
        for messages in (asked, begun):
            whole = {**body, "model": server.model_name, "messages": messages}
            async with session.post(url, json=whole) as reply:
                answers.append((await reply.json())["choices"][0])
    tokens = answers[0]["logprobs"]["content"]
    assert "".join(token["token"] for token in tokens) == answers[0]["message"]["content"]
    assert all(len(token["top_logprobs"]) == 3 for token in tokens)
    assert answers[1]["message"]["content"].removeprefix(begun[1]["content"]).startswith(" b")


async def test_the_server_dies_with_its_parent(path):
    """However the parent dies, and while the model is still being loaded."""
    for wait_until_loaded in (False, True):
        parent = await asyncio.create_subprocess_exec(
            sys.executable, "-c", PARENT, str(path), stdout=asyncio.subprocess.PIPE
        )
        child = await child_of(parent.pid)
        if wait_until_loaded:
            assert await parent.stdout.readline()
        parent.send_signal(signal.SIGKILL)
        await parent.wait()
        assert await gone(child)
