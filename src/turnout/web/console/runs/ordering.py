"""The form of a new run, which takes what `POST /runs` takes."""

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError
from starlette.responses import Response

from turnout.core.money import usd_to_micros
from turnout.errors import GatewayError, TurnoutError
from turnout.gateway.config.tables import dotted, plain_words
from turnout.web.console.failures import failure_of
from turnout.web.console.runs.parts import RunPages, scope_of
from turnout.web.console.sections import Done
from turnout.web.console.visits import Form, Visit
from turnout.web.runs.intake import take
from turnout.web.runs.orders import RunIn

__all__ = ["LABELS", "OrderForm", "order", "show_form"]

_TEXTS: Final = ("task", "diff", "head", "base", "surface", "policy", "test_command", "publish")
_OTHERS: Final = ("kind", "repo", "requirements", "labels", "notify", "priority")
_LIMITS: Final = ("max_steps", "max_minutes", "max_spend")
_FIELDS: Final = (*_TEXTS, *_OTHERS, *_LIMITS)
_PARTS: Final[Mapping[str, str]] = {
    "limits.max_steps": "max_steps",
    "limits.max_seconds": "max_minutes",
    "limits.max_spend_micros": "max_spend",
}
"""Fields of the form that are called otherwise in the API."""
LABELS: Final[Mapping[str, str]] = {
    "task": "Task",
    "repo": "Repository",
    "base": "Base",
    "kind": "Kind",
    "test_command": "Test command",
    "requirements": "Requirements of the tests",
    "surface": "Tools",
    "policy": "Policy",
    "max_steps": "Steps at most",
    "max_minutes": "Minutes at most",
    "max_spend": "US dollars at most",
    "priority": "Priority",
    "labels": "Labels",
    "notify": "Address to tell",
    "publish": "What becomes of the diff",
    "head": "Head",
    "diff": "Diff",
}
"""What each field is called on the page, in its order."""
_UNITS: Final[Mapping[str, str]] = {
    "max_minutes": "This must be a number of minutes: more than 0, at most 10,080.",
    "max_spend": "This must be an amount in US dollars: more than 0, at most 1,000,000,000.",
}
"""What is said of fields that the API takes in another unit."""
_WIRE: Final = re.compile(r"`([a-z_]+)`")


@dataclass(frozen=True, slots=True)
class OrderForm:
    """What the form shows: what was typed, and what is wrong with it."""

    values: Mapping[str, str]
    repositories: Sequence[str]
    """Those that are known by a name."""
    servers: Sequence[str]
    """Of which any repository may be named by its address."""
    pushes: Sequence[str]
    """Those that branches are pushed to."""
    policies: Sequence[str]
    """Those that the key may choose, its own first."""
    notifies: bool
    """Whether an address is told of runs at all."""
    once: str
    """Stands for this one order, however often it is sent."""
    errors: Mapping[str, str] = field(default_factory=dict)
    failed: str = ""
    """What is wrong that is about no one field."""

    def value(self, name: str) -> str:
        """Return what was typed."""
        return self.values.get(name, "")

    def error(self, name: str) -> str:
        """Return what is wrong with a field; empty where nothing is."""
        return self.errors.get(name, "")

    @property
    def wrong(self) -> Sequence[tuple[str, str, str]]:
        """The fields that are wrong, in the order of the page: name, label and what is wrong."""
        return [(name, LABELS[name], self.errors[name]) for name in LABELS if name in self.errors]


class _WrongFieldsError(Exception):
    """Some fields cannot be read."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__(", ".join(errors))
        self.errors = errors


async def show_form(pages: RunPages, visit: Visit) -> Response:
    """Show an empty form, or one with what the query names."""
    values = {name: visit.query(name) for name in _FIELDS}
    values["base"] = values["base"] or "HEAD"
    values["kind"] = values["kind"] or "change"
    return visit.page("runs/new.html", _form(pages, visit, values, secrets.token_hex(16)))


async def order(pages: RunPages, visit: Visit) -> Done:
    """Order what the form says, once; what is wrong with it is shown beside the field."""
    form = visit.form
    values = {name: form.text(name) for name in _FIELDS}
    once = form.text("once")
    try:
        submitted = await take(pages.runs, scope_of(visit), _read(form), once)
    except _WrongFieldsError as error:
        view = _form(pages, visit, values, once, errors=error.errors)
        return Done(visit.page("runs/new.html", view, status=400), changed=False)
    except TurnoutError as error:
        return Done(_refused(pages, visit, values, error), changed=False)
    run = submitted.run
    detail = {"repo": run.order.task.repository, "base": run.order.task.base}
    return Done(visit.go(f"/runs/{run.run_id}"), run.run_id, detail, submitted.created)


def _refused(
    pages: RunPages, visit: Visit, values: Mapping[str, str], error: TurnoutError
) -> Response:
    """Show the form again with what the service has against it, to be sent as another order."""
    failure, said = failure_of(error), _in_words(str(error))
    param = error.param if isinstance(error, GatewayError) else None
    name = _PARTS.get(param or "", param or "")
    errors, failed = ({name: said}, "") if name in _FIELDS else ({}, said)
    view = _form(pages, visit, values, secrets.token_hex(16), errors=errors, failed=failed)
    return visit.page("runs/new.html", view, status=failure.status)


def _form(
    pages: RunPages,
    visit: Visit,
    values: Mapping[str, str],
    once: str,
    *,
    errors: Mapping[str, str] | None = None,
    failed: str = "",
) -> OrderForm:
    book = pages.runs.repositories
    return OrderForm(
        values=values,
        repositories=sorted(book.named),
        servers=book.servers,
        pushes=sorted(filter(book.may_push, book.named)),
        policies=visit.caller.policies,
        notifies=pages.runs.notifies,
        once=once,
        errors=errors or {},
        failed=failed,
    )


def _read(form: Form) -> RunIn:
    """Return what the form says as the API takes it; `_WrongFieldsError` where that cannot be."""
    errors: dict[str, str] = {}
    body: dict[str, Any] = {"kind": form.text("kind") or "change", "repo": form.text("repo")}
    body |= {name: form.text(name) for name in _TEXTS if form.text(name).strip()}
    if form.text("requirements").strip():
        body["requirements"] = _lines(form.text("requirements"))
    body["labels"] = form.text("labels").replace(",", " ").split()
    if form.text("notify").strip():
        body["notify"] = form.text("notify").strip()
    numbers = (
        ("priority", int, "priority"),
        ("max_steps", int, "max_steps"),
        ("max_minutes", _seconds, "max_seconds"),
        ("max_spend", _micros, "max_spend_micros"),
    )
    limits: dict[str, Any] = {}
    for name, kind, key in numbers:
        value = _number(form, name, kind, errors)
        if value is not None:
            (body if name == "priority" else limits)[key] = value
    body["limits"] = limits
    try:
        wanted = RunIn.model_validate(body)
    except ValidationError as error:
        for each in error.errors():
            path = dotted("", each["loc"])
            name = _PARTS.get(path, path.partition("[")[0])
            errors.setdefault(name, _UNITS.get(name) or f"This {plain_words(each)}.")
        raise _WrongFieldsError(errors) from error
    if errors:
        raise _WrongFieldsError(errors)
    return wanted


def _number(
    form: Form, name: str, kind: Callable[[str], float], errors: dict[str, str]
) -> float | None:
    text = form.text(name).strip()
    if not text:
        return None
    try:
        return kind(text)
    except ValueError:
        errors[name] = _UNITS.get(name, "This must be a whole number.")
        return None


def _in_words(said: str) -> str:
    """Return what the API says with the fields called as they are on the page."""
    return _WIRE.sub(lambda name: f"“{LABELS[name[1]]}”" if name[1] in LABELS else name[0], said)


def _seconds(text: str) -> float:
    return float(text) * 60


def _micros(text: str) -> int:
    return usd_to_micros(text.removeprefix("$"))


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]
