"""Keys: made and shown once, limited, changed and revoked."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time
from decimal import Decimal
from typing import Final

from starlette.responses import Response

from turnout.core.govern.keys import KeyLimits, KeyRecord
from turnout.core.govern.usage import UsageFigures, UsageQuery
from turnout.core.money import Micros, usd_to_micros
from turnout.errors import ConflictError, TurnoutError, UsageError
from turnout.gateway.admin.callers import admin_required
from turnout.gateway.keys.desk import KeyDesk
from turnout.gateway.notices.ports import UsageReader
from turnout.web.console.govern.views.keys import ROLES, KeyLine, RoleChoice, key_line
from turnout.web.console.sections import Change, Done, Page, Section
from turnout.web.console.visits import Form, Visit

__all__ = [
    "KeyFields",
    "KeyView",
    "KeysView",
    "MadeKeyView",
    "NewKeyView",
    "keys_section",
]

_LONGEST_NUMBER: Final = 15


@dataclass(frozen=True, slots=True)
class KeysView:
    """Every key, or the visitor's own."""

    lines: Sequence[KeyLine]


@dataclass(frozen=True, slots=True)
class KeyFields:
    """The fields of a key as a form holds them."""

    name: str = ""
    project: str = "default"
    policies: str = "default"
    role: str = "member"
    admin: bool = False
    requests_per_minute: str = ""
    concurrency: str = ""
    spend_per_day: str = ""
    expires: str = ""


@dataclass(frozen=True, slots=True)
class KeyView:
    """One key, and the form in which it is changed."""

    line: KeyLine
    fields: KeyFields
    today: UsageFigures
    """What it has used since midnight, UTC."""
    roles: Sequence[RoleChoice] = ROLES
    doubt: str = ""
    """What keeps it from every model, as far as the settings say."""
    error: str = ""
    mend: str = ""


@dataclass(frozen=True, slots=True)
class NewKeyView:
    """The form in which a key is made."""

    fields: KeyFields
    roles: Sequence[RoleChoice] = ROLES
    error: str = ""
    mend: str = ""


@dataclass(frozen=True, slots=True)
class MadeKeyView:
    """A key that was made, this once."""

    key: str
    line: KeyLine
    doubt: str

    def __repr__(self) -> str:
        """Say nothing of the key."""
        return f"MadeKeyView({self.line.record.name!r})"


def keys_section(
    desk: KeyDesk, usage: UsageReader, doubt: Callable[[KeyRecord], Awaitable[str]]
) -> Section:
    """Return the pages: a key sees itself, an admin sees and changes all."""
    pages = _Pages(desk, usage, doubt)
    return Section(
        "Keys",
        "/keys",
        pages=(
            Page("/keys", pages.all),
            Page("/keys/_new", pages.new, "admin"),
            Page("/keys/{name}", pages.one),
        ),
        changes=(
            Change("/keys/_new", "create_key", pages.create, "admin"),
            Change("/keys/{name}", "change_key", pages.change, "admin"),
            Change("/keys/{name}/revoke", "revoke_key", pages.revoke, "admin"),
        ),
    )


class _Pages:
    def __init__(
        self, desk: KeyDesk, usage: UsageReader, doubt: Callable[[KeyRecord], Awaitable[str]]
    ) -> None:
        self._desk = desk
        self._usage = usage
        self._doubt = doubt

    async def all(self, visit: Visit) -> Response:
        """List the keys; without admin rights, the visitor's own."""
        now, caller = self._desk.now(), visit.caller
        seen = [r for r in await self._desk.list() if caller.admin or r.name == caller.key]
        return visit.page("govern/keys.html", KeysView([key_line(each, now) for each in seen]))

    async def new(self, visit: Visit) -> Response:
        """Show the form of a key that is to be made."""
        fields = KeyFields(project=visit.project)
        return visit.page("govern/key_new.html", NewKeyView(fields))

    async def create(self, visit: Visit) -> Done:
        """Make a key; the answer shows it this once."""
        fields = _fields(visit.form)
        plain = KeyRecord(fields.name, "", (), KeyLimits(), self._desk.now(), "")
        try:
            issued = await self._desk.create(_changed(plain, fields))
        except (UsageError, ConflictError) as error:
            view = NewKeyView(fields, error=error.message, mend=error.mend)
            return Done(visit.page("govern/key_new.html", view, status=400), changed=False)
        line = key_line(issued.record, self._desk.now())
        made = MadeKeyView(issued.key, line, await self._doubt(issued.record))
        return Done(visit.page("govern/key_made.html", made), fields.name, _detail(issued.record))

    async def one(self, visit: Visit) -> Response:
        """Show one key; without admin rights, the visitor's own."""
        record = await self._seen(visit)
        return visit.page("govern/key.html", await self._view(record, _fields_of(record)))

    async def change(self, visit: Visit) -> Done:
        """Change what a key may do."""
        name, fields = visit.path("name"), _fields(visit.form)
        before = await self._desk.get(name)
        try:
            after = await self._desk.update(name, lambda record: _changed(record, fields))
        except UsageError as error:
            view = await self._view(before, fields, error)
            return Done(visit.page("govern/key.html", view, status=400), changed=False)
        return Done(visit.go(f"/keys/{name}"), name, _detail(after), changed=after != before)

    async def revoke(self, visit: Visit) -> Done:
        """Shut a key for good."""
        name = visit.path("name")
        before = await self._desk.get(name)
        after = await self._desk.revoke(name)
        return Done(visit.go("/keys"), name, changed=after != before)

    async def _seen(self, visit: Visit) -> KeyRecord:
        name = visit.path("name")
        if name != visit.caller.key and not visit.caller.admin:
            raise admin_required()
        return await self._desk.get(name)

    async def _view(
        self, record: KeyRecord, fields: KeyFields, error: TurnoutError | None = None
    ) -> KeyView:
        line = key_line(record, self._desk.now())
        doubt = "" if line.state == "revoked" else await self._doubt(record)
        said = ("", "") if error is None else (error.message, error.mend)
        return KeyView(line, fields, await self._today(record.name), ROLES, doubt, *said)

    async def _today(self, name: str) -> UsageFigures:
        midnight = self._desk.now().replace(hour=0, minute=0, second=0, microsecond=0)
        query = UsageQuery(by=("key",), since=midnight, key=name, limit=1)
        return (await self._usage.usage(query)).total


def _fields(form: Form) -> KeyFields:
    return KeyFields(
        name=form.text("name").strip(),
        project=form.text("project").strip(),
        policies=form.text("policies").strip(),
        role=form.text("role"),
        admin=form.flag("admin"),
        requests_per_minute=form.text("requests_per_minute").strip(),
        concurrency=form.text("concurrency").strip(),
        spend_per_day=form.text("spend_per_day").strip(),
        expires=form.text("expires").strip(),
    )


def _fields_of(record: KeyRecord) -> KeyFields:
    limits = record.limits
    spend = limits.spend_per_day
    return KeyFields(
        name=record.name,
        project=record.project,
        policies="\n".join(record.policies),
        role=record.role,
        admin=record.admin,
        requests_per_minute=_text(limits.requests_per_minute),
        concurrency=_text(limits.concurrency),
        spend_per_day="" if spend is None else format(Decimal(spend) / 1_000_000, "f"),
        expires="" if record.expires_at is None else f"{record.expires_at:%Y-%m-%d}",
    )


def _changed(record: KeyRecord, fields: KeyFields) -> KeyRecord:
    """Return a record as the fields have it; `UsageError` where one of them is wrong."""
    role = next((each.role for each in ROLES if each.role == fields.role), None)
    if role is None:
        raise UsageError(f"There is no role {fields.role[:100]!r}.")
    return replace(
        record,
        project=fields.project,
        policies=tuple(dict.fromkeys(fields.policies.replace(",", " ").split())),
        role=role,
        admin=fields.admin,
        limits=KeyLimits(
            _count(fields.requests_per_minute, "Requests a minute"),
            _count(fields.concurrency, "Requests at once"),
            _amount(fields.spend_per_day),
        ),
        expires_at=_expiry(fields.expires, record.expires_at),
    )


def _count(text: str, what: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER):
        raise UsageError(f"{what} is a whole number.", mend="Leave it empty for no limit.")
    return int(text)


def _amount(text: str) -> Micros | None:
    if not text:
        return None
    try:
        if len(text) > _LONGEST_NUMBER:
            raise ArithmeticError
        return usd_to_micros(text)
    except (ArithmeticError, ValueError) as error:
        raise UsageError(
            "Spend a day is an amount in US dollars, such as 2.50.",
            mend="Leave it empty for no limit.",
        ) from error


def _expiry(text: str, before: datetime | None) -> datetime | None:
    """Return the end of a day, UTC; a day that was not changed keeps its own hour."""
    if not text:
        return None
    if before is not None and f"{before:%Y-%m-%d}" == text:
        return before
    try:
        day = datetime.strptime(text, "%Y-%m-%d").date()
    except ValueError as error:
        raise UsageError("Expiry is a date, such as 2027-01-31.") from error
    return datetime.combine(day, time.max, UTC).replace(microsecond=0)


def _detail(record: KeyRecord) -> dict[str, str]:
    """Return what goes on record of a key."""
    return {
        "project": record.project,
        "policies": ", ".join(record.policies),
        "role": record.role,
        "admin": str(record.admin).lower(),
    }


def _text(value: int | None) -> str:
    return "" if value is None else str(value)
