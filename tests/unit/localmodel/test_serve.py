import asyncio
import os
import subprocess
import sys

import aiohttp
import pytest

from turnout.errors import MissingExtraError, ModelUnavailableError
from turnout.localmodel.serve import CHILD, LocalServer, default_threads
from turnout.localmodel.wheels import PIP

SERVER = """
import http.server, sys, threading

class Handler(http.server.BaseHTTPRequestHandler):
    asked = 0
    def do_GET(self):
        Handler.asked += 1
        self.send_response(503 if Handler.asked < 3 else 200)
        self.end_headers()
        self.wfile.write(" ".join(sys.argv[2:]).encode())
    def log_message(self, *args):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print("llama.cpp says hello")
print(f"http://127.0.0.1:{server.server_port}", flush=True)
sys.stdin.read()
"""
BROKEN = "import sys; sys.exit('error: the file holds no model')"
SILENT = "import sys; sys.stdin.read()"


@pytest.fixture
def start(tmp_path):
    """Return a function that makes a server whose child runs the given code."""
    (tmp_path / "m.gguf").write_bytes(b"weights")

    def start(code, **options):
        return LocalServer(tmp_path / "m.gguf", child=(sys.executable, "-c", code), **options)

    return start


async def ask(server):
    """Return what the server answers."""
    async with aiohttp.request("GET", server.base_url) as answer:
        return await answer.text()


async def test_a_server_is_up_when_it_says_that_it_is_healthy(start):
    """Not while it answers 503; it was told name, threads and context."""
    async with start(SERVER, threads=3, context=512) as server:
        assert server.base_url.endswith("/v1")
        assert await ask(server) == "m 3 512"


async def test_nothing_is_left_when_the_block_ends(start):
    """The process has ended, and whoever waits for that is told."""
    async with start(SERVER) as server:
        waiting = asyncio.create_task(server.wait())
        await asyncio.sleep(0)
        assert not waiting.done()
    async with asyncio.timeout(5):
        await waiting
    with pytest.raises(aiohttp.ClientConnectorError):
        await ask(server)


async def test_a_server_that_ends_at_once_is_quoted(start):
    """Its own words tell more than its exit code."""
    with pytest.raises(ModelUnavailableError, match=r"exit code 1.*holds no model"):
        async with start(BROKEN):
            pass


async def test_a_server_that_never_comes_up_is_given_up(start):
    """After the time-out, its process ended."""
    with pytest.raises(ModelUnavailableError, match=r"not up within 0\.3 seconds.*nothing"):
        async with start(SILENT, startup_timeout=0.3):
            pass


async def test_a_missing_file_names_the_command_that_fetches_it(tmp_path):
    """No process is started."""
    with pytest.raises(ModelUnavailableError, match="turnout models pull"):
        async with LocalServer(tmp_path / "none.gguf"):
            pass


async def test_a_missing_extra_names_the_command_that_installs_it(start, monkeypatch):
    """Before anything else."""
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'turnout\[local\]'"):
        async with start(SERVER):
            pass


def test_a_known_file_is_served_under_its_models_name(tmp_path):
    """Any other under its own."""
    file = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
    assert LocalServer(tmp_path / file).model_name == "qwen2.5-coder-1.5b"
    assert LocalServer(tmp_path / "own.gguf").model_name == "own"


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 2), (3, 3), (4, 3), (8, 6), (64, 48)])
def test_a_quarter_of_many_cores_is_left_to_others(cores, threads):
    """But there is always one thread."""
    assert default_threads(cores) == threads
    assert default_threads() == default_threads(len(os.sched_getaffinity(0)))


async def test_threads_that_wait_go_to_sleep(start):
    """Sooner than OpenMP has them by default: else they keep tests from running, and each other."""
    told = 'os.environ["GOMP_SPINCOUNT"].encode()'
    code = "import os\n" + SERVER.replace('" ".join(sys.argv[2:]).encode()', told)
    async with start(code) as server:
        assert await ask(server) == "2000"


@pytest.mark.abuse
@pytest.mark.parametrize("argv", [(*CHILD, "m.gguf", "m", "1", "512"), (*PIP, "--version")])
def test_the_current_directory_lends_no_code(tmp_path, argv):
    """It may be a hostile repository, and these processes run outside of the sandbox."""
    for name in ("xllamacpp", "pip", "json", "ctypes"):
        (tmp_path / name).mkdir()
        for file in ("__init__.py", "__main__.py"):
            (tmp_path / name / file).write_text("open('ran', 'w')")
    subprocess.run(argv, cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert not (tmp_path / "ran").exists()
