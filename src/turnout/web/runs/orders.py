"""What `POST /runs` takes, and the order that it becomes."""

import hashlib
import re
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from turnout.core.ids import RunId
from turnout.core.json import ascii_json
from turnout.core.money import Micros
from turnout.core.service.orders import Once, Order, OrderLimits, Publish
from turnout.core.tasks import ReviewAsk, RunKind, SurfaceName, Task
from turnout.errors import GatewayError, UsageError
from turnout.gateway.config.tables import shaped
from turnout.runs.intake import LARGEST_DIFF, NOTHING_SAID, check_diff
from turnout.web.runs.callers import Scope

__all__ = ["LimitsIn", "RunIn", "once_of", "once_of_retry"]

_LONGEST_KEY: Final = 255
_KEY: Final = re.compile(rf"[\x21-\x7e]{{1,{_LONGEST_KEY}}}")
_BASE: Final = re.compile(r"[^\s\x00-\x1f\x7f~^:?*\[\\-][^\s\x00-\x1f\x7f:?*\[\\]{0,254}")

_WORK: Final = ("surface", "test_command", "requirements", "publish")
"""Fields that say how a change is made."""


def _without_nul(command: str) -> str:
    if "\0" in command:
        raise ValueError("must hold no NUL")
    return command


_Line = Annotated[str, Field(min_length=1, max_length=2_000), AfterValidator(_without_nul)]
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

    model_config = ConfigDict(extra="forbid", strict=True)

    max_steps: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Act steps of an attempt."""
    max_seconds: Annotated[float, Field(gt=0, le=7 * 86_400)] | None = None
    max_spend_micros: Annotated[int, Field(ge=1, le=10**15)] | None = None
    """Millionths of a US dollar."""

    @property
    def spend(self) -> Micros | None:
        """The cap on spend, where there is one."""
        return None if self.max_spend_micros is None else Micros(self.max_spend_micros)


class RunIn(BaseModel):
    """A task, where it is to be done, and how."""

    model_config = ConfigDict(extra="forbid", strict=True)

    kind: RunKind = "change"
    """change: do the task; review: read a change, and say what is wrong with it."""
    task: Annotated[str, Field(min_length=1, max_length=100_000)] | None = None
    """What is to be done, in words. A review needs none: it is what is said of the change."""
    diff: Annotated[str, Field(min_length=1, max_length=LARGEST_DIFF)] | None = None
    """Of a review: the change, as `git apply` takes it on `base`."""
    head: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    """Of a review without `diff`: the commit whose change since it has left `base` is read."""
    repo: Annotated[str, Field(min_length=1, max_length=2_000)]
    """Name of a repository of the service, or the https URL of one on a server that it lists."""
    base: Annotated[str, Field(min_length=1, max_length=255)] = "HEAD"
    """Branch, tag or commit to start from: HEAD, or what a branch or a tag leads to."""
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
    notify: Annotated[str, Field(min_length=1, max_length=2_048)] | None = None
    """An address that is told, in signed messages, when the run begins, waits and ends."""
    publish: Publish | None = None
    """What becomes of its diff: a new branch of its own, or that and a draft of a request."""

    def order(self, scope: Scope, surface: SurfaceName) -> Order:
        """Return the order of a caller; `GatewayError` (400) for one that cannot be.

        `surface` is taken where none was asked for.
        """
        _check_commit("base", self.base)
        review = self._review()
        if self.task is None and review is None:
            raise _wrong("task", "`task` is missing.")
        requirements = None if self.requirements is None else tuple(self.requirements)
        task = Task(
            prompt=self.task or NOTHING_SAID,
            repository=self.repo,
            base=self.base,
            surface="review" if review else self.surface or surface,
            test_command=self.test_command,
            requirements=requirements,
            review=review,
        )
        return Order(
            task=task,
            project=scope.project,
            key=scope.caller.key,
            policy=self.policy,
            priority=self.priority,
            notify=self.notify,
            publish=self.publish,
            labels=tuple(dict.fromkeys(self.labels)),
            limits=OrderLimits(
                self.limits.max_steps,
                self.limits.max_seconds,
                self.limits.spend,
            ),
        )

    def _review(self) -> ReviewAsk | None:
        """Return what is to be reviewed; None for an order of another kind."""
        if self.kind == "change":
            for name in ("diff", "head"):
                if getattr(self, name) is not None:
                    raise _wrong(name, f'`{name}` belongs to an order of kind "review".')
            return None
        for name in _WORK:
            if getattr(self, name) is not None:
                raise _wrong(
                    name, f"A review runs nothing and makes no diff: it takes no `{name}`."
                )
        if (self.diff is None) == (self.head is None):
            raise _wrong("diff", "A review takes either a `diff` or a `head`.")
        if self.head is not None:
            _check_commit("head", self.head)
            return ReviewAsk(head=self.head)
        diff = (self.diff or "").encode(errors="surrogatepass")
        try:
            check_diff(diff)
        except UsageError as error:
            raise _wrong("diff", error.message, error.mend) from error
        return ReviewAsk(diff)


def once_of(key: str | None, body: RunIn) -> Once | None:
    """Return the promise that an `Idempotency-Key` makes; `GatewayError` (400) for a wrong one."""
    if key is None:
        return None
    return _once(key, ascii_json(body.model_dump(mode="python", exclude_defaults=True)))


def once_of_retry(key: str | None, run_id: RunId) -> Once | None:
    """Return the promise that it makes for the retry of a run, as `once_of` does."""
    return None if key is None else _once(key, f"retry {run_id}")


def _once(key: str, said: str) -> Once:
    if not _KEY.fullmatch(key):
        text = f"`Idempotency-Key` must be 1 to {_LONGEST_KEY} printable characters."
        raise _wrong("Idempotency-Key", text)
    return Once(key, hashlib.sha256(said.encode()).hexdigest())


def _check_commit(field: str, named: str) -> None:
    odd = ".." in named or "@{" in named
    other = named.startswith("refs/") and not named.startswith(("refs/heads/", "refs/tags/"))
    if not _BASE.fullmatch(named) or odd or other:
        text = f"{named[:100]!r} names no commit. Name a branch, tag or commit."
        raise _wrong(field, text)


def _wrong(field: str, text: str, mend: str = "") -> GatewayError:
    return GatewayError(text, status=400, code="invalid_request", param=field, mend=mend)
