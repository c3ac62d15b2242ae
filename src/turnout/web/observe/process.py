"""What this process takes of its machine, in the names that every exporter uses."""

import resource
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from turnout.core.observe.metrics import Metrics

__all__ = ["ProcessMetrics"]

_STATM: Final = Path("/proc/self/statm")
_DESCRIPTORS: Final = Path("/proc/self/fd")


class ProcessMetrics:
    """Looks at the process whenever it is asked; what the system does not tell is left out."""

    def __init__(self, metrics: Metrics, version: str) -> None:
        self._seconds = metrics.counter(
            "process_cpu_seconds_total", "Processor time of this process, user and system."
        )
        self._memory = metrics.gauge(
            "process_resident_memory_bytes", "Memory of this process that is in RAM."
        )
        self._files = metrics.gauge("process_open_fds", "Open file descriptors of this process.")
        built = metrics.gauge("turnout_build_info", "Which Turnout this is.", ("version",))
        built.set({(version,): 1})
        self._counted = 0.0

    def look(self) -> None:
        """Take the figures of this moment."""
        taken = time.process_time()
        self._seconds.add(by=taken - self._counted)
        self._counted = taken
        with suppress(OSError, ValueError, IndexError):
            pages = int(_STATM.read_text(encoding="ascii").split()[1])
            self._memory.set({(): pages * resource.getpagesize()})
        with suppress(OSError):
            self._files.set({(): sum(1 for _ in _DESCRIPTORS.iterdir())})
