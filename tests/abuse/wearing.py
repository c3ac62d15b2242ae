"""Rows 41 to 48: wearing the machine out, or outliving a command."""

import resource

from tests.abuse.table import Place, Row, ending, outcome, python, shell

from turnout.sandbox.base import Command, CommandResult

__all__ = ["ROWS"]

_FORKS = """
import os, time
made = 0
try:
    while made < 2000:
        if os.fork() == 0:
            time.sleep(5)
            os._exit(0)
        made += 1
except OSError as error:
    print("forked", made, type(error).__name__)
else:
    print("FORKED", made)
os._exit(0)
"""
_MEMORY = """
import sys
held = []
for _ in range(200):
    held.append(bytearray(b"x") * (10 << 20))
print("GOT", len(held) * 10)
"""
_MANY = """
import os, threading, time
count = 0
try:
    while count < 5000:
        os.open("/dev/null", 0)
        count += 1
    print("FILES", count)
except OSError:
    print("files", count)
os.closerange(3, 5000)
count = 0
try:
    while count < 5000:
        threading.Thread(target=time.sleep, args=(1,), daemon=True).start()
        count += 1
    print("THREADS", count)
except RuntimeError:
    print("threads", count)
import sys
sys.stdout.flush()
os._exit(0)
"""
_SHM = (
    "head -c 2G /dev/zero >/dev/shm/a; head -c 2G /dev/zero >/tmp/a; "
    "echo total $(cat /dev/shm/a /tmp/a | wc -c); rm -f /dev/shm/a /tmp/a"
)
_DAEMONS = 'setsid env -i /bin/bash -c "setsid sleep 9871 & setsid -f sleep 9872 &"; sleep 20'
_COUNT = "echo left $(cat /proc/[0-9]*/comm 2>/dev/null | grep -c '^sleep$')"


def _told(result: CommandResult) -> str:
    """Return the end of a command, how long it took and how much of its output was kept."""
    kept = len(result.stdout) + len(result.stderr)
    return f"{ending(result.exit)}\nkept {kept}\nin {result.exit.wall_seconds:.1f} s"


async def _fork_bomb(place: Place) -> str:
    counted = await place.sandbox.run(Command(("python3", "-ISu", "-c", _FORKS), timeout=10))
    bomb = await place.run(":(){ :|:& };:; sleep 5", timeout=1)
    await place.sandbox.kill_all()
    after = await place.run(_COUNT)
    return f"{outcome(counted)}\n{_told(bomb)}\n{outcome(after)}"


async def _cut(place: Place, command: str) -> str:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await place.run(command)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
    return f"{_told(result)}\ngrew {grown} MiB"


async def _long_output(place: Place) -> str:
    return await _cut(place, "head -c 100000000 /dev/zero")


async def _endless_output(place: Place) -> str:
    return await _cut(place, "yes")


async def _deaf(place: Place) -> str:
    result = await place.run('trap "" TERM INT HUP; while :; do sleep 1; done', timeout=0.5)
    return f"{_told(result)}\n{outcome(await place.run(_COUNT))}"


async def _daemons(place: Place) -> str:
    result = await place.run(_DAEMONS, timeout=0.5)
    return f"{_told(result)}\n{outcome(await place.run(_COUNT))}"


ROWS = (
    Row(
        41,
        "a fork bomb",
        _fork_bomb,
        must=(r"^forked \d\d? ", r"^\[timeout", r"^in [1-4]\.\d s$", "^left 0$"),
        never=("FORKED",),
        without="FORKED 2000\n[timeout None]\nin 2.0 s\nleft 0",
    ),
    Row(
        42,
        "a memory bomb",
        python(_MEMORY),
        must=(r"MemoryError|\[oom |\[exited signal 9\]",),
        never=("GOT",),
        without="GOT 2000\n[exited 0]",
    ),
    Row(
        43,
        "files in memory",
        shell(_SHM),
        must=("No space left|File (size limit exceeded|too large)", r"^total \d{7,8}$"),
        never=(r"^total \d{9,}",),
        without="No space left\ntotal 4294967296",
    ),
    Row(
        44,
        "a hundred megabytes without a line's end",
        _long_output,
        must=(r"^\[output_limit ", r"^kept \d{1,6}$", r"^grew \d{1,2} MiB$"),
        never=(),
        without="[exited 0]\nkept 100000000\ngrew 95 MiB",
    ),
    Row(
        45,
        "output without end",
        _endless_output,
        must=(r"^\[output_limit ", r"^kept \d{1,6}$", r"^grew \d{1,2} MiB$"),
        never=(),
        without="[timeout None]\nkept 65536\ngrew 5 MiB",
    ),
    Row(
        46,
        "a command that is deaf to TERM",
        _deaf,
        must=(r"^\[timeout ", r"^in [1-4]\.\d s$", "^left 0$"),
        never=(),
        without="[timeout None]\nin 20.0 s\nleft 1",
    ),
    Row(
        47,
        "processes that left session, group and environment",
        _daemons,
        must=(r"^\[timeout ", r"^in [0-4]\.\d s$", "^left 0$"),
        never=(),
        without="[timeout None]\nin 0.5 s\nleft 2",
    ),
    Row(
        48,
        "open files and threads",
        python(_MANY),
        must=(r"^files \d{2}$", r"^threads \d{1,2}$"),
        never=("FILES", "THREADS"),
        without="files 1020\nTHREADS 5000",
    ),
)
