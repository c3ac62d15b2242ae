"""Benches that are ended: nothing that they have started outlives them."""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
_SECONDS = 40.0

PEER = """
import asyncio, sys
from pathlib import Path
from frame import parse_options
from peers import free_port, running

CHILD = '''
import http.server, sys
handler = http.server.SimpleHTTPRequestHandler
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), handler).serve_forever()
'''

async def main():
    port = free_port()
    async with running([sys.executable, "-c", CHILD, str(port)], port):
        tell(port)
        await asyncio.sleep(600)

def tell(port):
    for stat in Path("/proc").glob("[0-9]*/cmdline"):
        if str(port).encode() in stat.read_bytes().split(b"\\0"):
            print(stat.parent.name, flush=True)

parse_options("A server beside us.")
asyncio.run(main())
"""
ROLE = """
import asyncio
from frame import parse_options
from servers import process, upstream

async def main():
    async with process(upstream) as place:
        print(place.pid, flush=True)
        await asyncio.sleep(600)

if __name__ == "__main__":
    parse_options("A role in a process of its own.")
    asyncio.run(main())
"""


@pytest.mark.parametrize("script", [PEER, ROLE], ids=["peer", "role"])
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["term", "kill"])
async def test_a_bench_that_is_ended_leaves_no_process_behind(
    tmp_path: Path, script: str, how: signal.Signals
) -> None:
    """Neither where it was told to end nor where it was killed."""
    at = tmp_path / "bench.py"
    at.write_text(script)
    bench = await asyncio.create_subprocess_exec(
        sys.executable,
        str(at),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={"PATH": os.defpath, "PYTHONPATH": str(BENCH)},
    )
    assert bench.stdout is not None
    async with asyncio.timeout(_SECONDS):
        child = int(await bench.stdout.readline())
    assert alive(child)
    bench.send_signal(how)
    async with asyncio.timeout(_SECONDS):
        await bench.wait()
        await asyncio.to_thread(gone, child)


def gone(process: int) -> None:
    """Wait until a process is gone."""
    until = time.monotonic() + _SECONDS
    while alive(process):
        assert time.monotonic() < until
        time.sleep(0.05)


def alive(process: int) -> bool:
    """Say whether a process runs; one that nobody has asked the end of does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in {"Z", "X"}
