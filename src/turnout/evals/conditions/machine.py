"""The machine at hand, as far as it bears on how long runs and tests take."""

import os
import platform
from pathlib import Path
from typing import Final

from turnout.evals.conditions.model import Machine

__all__ = ["this_machine"]

_MIB: Final = 1 << 20
_CPUINFO: Final = Path("/proc/cpuinfo")


def this_machine(sandbox: str, cpuinfo: Path = _CPUINFO) -> Machine:
    """Return what it is; `sandbox` names the driver of its sandboxes."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Machine(
        cpus=len(os.sched_getaffinity(0)),
        processor=_processor(cpuinfo) or platform.machine(),
        memory_mib=memory // _MIB,
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=platform.python_version(),
        sandbox=sandbox,
    )


def _processor(cpuinfo: Path) -> str:
    """Return the name of the first processor; empty where the system does not tell."""
    try:
        lines = cpuinfo.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "")
