"""What `POST /runs` takes, and the order that it becomes."""

import hashlib
import re
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from turnout.core.json import ascii_json
from turnout.core.money import Micros
from turnout.core.service.orders import Once, Order, OrderLimits
from turnout.core.tasks import SurfaceName, Task
from turnout.errors import GatewayError, UsageError
from turnout.gateway.config.tables import shaped
from turnout.web.runs.callers import Scope

__all__ = ["LimitsIn", "RunIn", "once_of"]

_LONGEST_KEY: Final = 255
_KEY: Final = re.compile(rf"[\x21-\x7e]{{1,{_LONGEST_KEY}}}")
_BASE: Final = re.compile(r"[^\s\x00-\x1f\x7f~^:?*\[\\-][^\s\x00-\x1f\x7f:?*\[\\]{0,254}")

_Line = Annotated[str, Field(min_length=1, max_length=2_000)]
_LABEL: Final = r"[A-Za-z0-9][A-Za-z0-9._/:=-]{0,99}"
_Label = Annotated[
    str,
    shaped(
        _LABEL,
        "at most 100 letters, digits and `. _ / : = -`, the first of them a letter or a digit",
    ),
    Field(json_schema_extra={"pattern": f"^{_LABEL}$"}),
]


class LimitsIn(BaseModel):
    """What the run may take at most; never more than the service's own limits."""

    model_config = ConfigDict(extra="forbid")

    max_steps: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Act steps of an attempt."""
    max_seconds: Annotated[float, Field(gt=0, le=7 * 86_400)] | None = None
    max_spend_micros: Annotated[int, Field(ge=1, le=10**15)] | None = None
    """Millionths of a US dollar."""


class RunIn(BaseModel):
    """A task, where it is to be done, and how."""

    model_config = ConfigDict(extra="forbid")

    task: Annotated[str, Field(min_length=1, max_length=100_000)]
    """What is to be done, in words."""
    repo: Annotated[str, Field(min_length=1, max_length=2_000)]
    """Name of a repository of the service, or the https URL of one on a server that it lists."""
    base: Annotated[str, Field(min_length=1, max_length=255)] = "HEAD"
    """Branch, tag or commit to start from."""
    surface: Literal["guide", "shell", "files"] | None = None
    """The set of tools; the service's own where it is left out."""
    policy: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    """Policy of its model calls: one that the key may choose; else the key's own."""
    test_command: _Line | None = None
    """Runs the tests, within the sandbox; else it is detected."""
    requirements: Annotated[list[_Line], Field(max_length=500)] | None = None
    """Of the environment of the tests; else those that the repository declares."""
    priority: Annotated[int, Field(ge=-100, le=100)] = 0
    """The highest of a project goes first."""
    labels: Annotated[list[_Label], Field(max_length=20)] = []
    limits: LimitsIn = LimitsIn()

    def order(self, scope: Scope, surface: SurfaceName) -> Order:
        """Return the order of a caller; `UsageError` for a base that no commit can have.

        `surface` is taken where none was asked for.
        """
        if not _BASE.fullmatch(self.base) or ".." in self.base:
            raise UsageError(
                f"{self.base[:100]!r} names no commit.", mend="Name a branch, tag or commit."
            )
        requirements = None if self.requirements is None else tuple(self.requirements)
        task = Task(
            prompt=self.task,
            repository=self.repo,
            base=self.base,
            surface=self.surface or surface,
            test_command=self.test_command,
            requirements=requirements,
        )
        spend = self.limits.max_spend_micros
        return Order(
            task=task,
            project=scope.project,
            key=scope.caller.key,
            policy=self.policy,
            priority=self.priority,
            labels=tuple(dict.fromkeys(self.labels)),
            limits=OrderLimits(
                self.limits.max_steps,
                self.limits.max_seconds,
                None if spend is None else Micros(spend),
            ),
        )


def once_of(key: str | None, body: RunIn) -> Once | None:
    """Return the promise that an `Idempotency-Key` makes; `GatewayError` (400) for a wrong one."""
    if key is None:
        return None
    if not _KEY.fullmatch(key):
        raise GatewayError(
            f"`Idempotency-Key` must be 1 to {_LONGEST_KEY} printable characters.",
            status=400,
            code="invalid_request",
            param="Idempotency-Key",
        )
    said = ascii_json(body.model_dump(mode="python"))
    return Once(key, hashlib.sha256(said.encode()).hexdigest())
