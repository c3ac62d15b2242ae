"""What engines complain about, and what helps."""

import re

from turnout.errors import SandboxUnavailableError
from turnout.sandbox.container.engines.engine import Engine

__all__ = ["why_not"]

_MENDS = (
    (
        r"setting rlimit",
        "Give the engine limits that this machine allows: `ulimits` under `[sandbox.container]`.",
    ),
    (
        r"runtime.*(not found|no such file)|(unknown|invalid).*runtime",
        "Install the runtime, or name another with `runtime` under `[sandbox.container]`.",
    ),
    (r"seccomp", "The engine refuses our system call filter: install a newer one."),
    (r"cgroup", "Let the engine limit memory, processes and CPU: use cgroup v2 with delegation."),
    (
        r"permission denied|operation not permitted",
        "See to it that this user may run containers.",
    ),
)


def why_not(engine: Engine, complaint: str) -> SandboxUnavailableError:
    """Return the error for a container that did not start, with what would help."""
    lines = complaint.strip().splitlines() or ["it printed nothing"]
    mend = next((mend for hint, mend in _MENDS if re.search(hint, complaint, re.IGNORECASE)), "")
    return SandboxUnavailableError(
        f"{engine.name.capitalize()} started no container: {lines[-1][-400:].rstrip('.')}.",
        mend=mend,
    )
