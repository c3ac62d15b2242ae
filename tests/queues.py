"""Servers of queues that belong to one test module, on free ports of this machine."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["RedisServer", "free_port", "running_rabbit"]

_SECONDS = 60.0
"""That a server may take until it listens."""


class RedisServer:
    """A Redis that keeps what it was told, and may be killed and started again."""

    def __init__(self, folder: Path) -> None:
        program = shutil.which("redis-server")
        if program is None:
            pytest.skip("Redis is not installed: redis-server was not found")
        self._port = free_port()
        self.url = f"redis://127.0.0.1:{self._port}/0"
        kept = ("--save", "", "--appendonly", "yes", "--appendfsync", "always")
        place = ("--bind", "127.0.0.1", "--port", str(self._port), "--dir", str(folder))
        self._argv = (program, *place, *kept)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self._process = _started(self._argv, None)
        _wait_for(self._port, self._process)

    def kill(self) -> None:
        """End it without a word."""
        if self._process is not None:
            _kill(self._process)


@contextmanager
def running_rabbit(folder: Path) -> Iterator[str]:
    """Run a RabbitMQ; yield its URL."""
    program = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
    epmd = shutil.which("epmd")
    if epmd is None or not program.exists():
        pytest.skip(f"RabbitMQ is not installed: {program} was not found")
    port, names = free_port(), free_port()
    environment = {
        "PATH": "/usr/lib/rabbitmq/bin:/usr/sbin:/usr/bin:/bin",
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "ERL_EPMD_PORT": str(names),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODENAME": f"turnout{port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_CONFIG_FILE": str(folder / "none"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none",
    }
    named = _started((epmd, "-port", str(names), "-address", "127.0.0.1"), environment)
    server = _started((str(program),), environment)
    try:
        _wait_for(port, server)
        yield f"amqp://guest:guest@127.0.0.1:{port}/"
    finally:
        _kill(server)
        _kill(named)


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _started(argv: Sequence[str], environment: Mapping[str, str] | None) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        argv,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None:
            raise RuntimeError(f"{process.args} has ended with {process.returncode}")
        time.sleep(0.02)
    raise RuntimeError(f"{process.args} does not listen after {_SECONDS:.0f} s")


def _kill(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=10)
