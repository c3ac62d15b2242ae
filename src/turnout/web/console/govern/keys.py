"""Keys: made and shown once, limited, changed and revoked."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, time
from decimal import Decimal
from typing import Final

from starlette.responses import Response

from turnout.core.govern.keys import KeyLimits, KeyRecord
from turnout.core.govern.usage import UsageFigures, UsageQuery
from turnout.core.json import JsonValue, as_object, ascii_json, read_json
from turnout.core.money import Micros, usd_to_micros
from turnout.errors import ConflictError, TurnoutError, UsageError
from turnout.gateway.admin.callers import admin_required
from turnout.gateway.keys.desk import NAME_RULE, KeyDesk, is_name
from turnout.gateway.notices.ports import UsageReader
from turnout.web.console.govern.views.keys import ROLES, KeyLine, RoleChoice, key_line
from turnout.web.console.sections import Change, Done, Page, Section
from turnout.web.console.visits import Form, Visit

__all__ = [
    "FieldChange",
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
    role: str = "models"
    admin: bool = False
    requests_per_minute: str = ""
    concurrency: str = ""
    spend_per_day: str = ""
    expires: str = ""


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field of a key that is not as somebody has seen it."""

    field: str
    before: str
    after: str


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
    errors: Mapping[str, str] = field(default_factory=dict)
    """What is wrong with a field, by its name."""
    changes: Sequence[FieldChange] = ()
    """What somebody else has changed since the form was opened."""

    @property
    def seen(self) -> str:
        """The key as the form was made from it, for the form to carry."""
        return _seen(_fields_of(self.line.record))


@dataclass(frozen=True, slots=True)
class NewKeyView:
    """The form in which a key is made."""

    fields: KeyFields
    roles: Sequence[RoleChoice] = ROLES
    error: str = ""
    mend: str = ""
    errors: Mapping[str, str] = field(default_factory=dict)
    """What is wrong with a field, by its name."""


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
            view = NewKeyView(
                fields, error=error.message, mend=error.mend, errors=_errors_of(error)
            )
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
        seen = visit.form.text("seen")

        def change(record: KeyRecord) -> KeyRecord:
            wanted, stands = _changed(record, fields), record.revoked_at is None
            if wanted != record and stands and _seen(_fields_of(record)) != seen:
                raise _ChangedError(record)
            return wanted

        try:
            after = await self._desk.update(name, change)
        except _ChangedError as error:
            view = await self._conflict(error.record, fields, seen)
            return Done(visit.page("govern/key.html", view, status=409), changed=False)
        except UsageError as error:
            view = await self._view(before, fields, error)
            return Done(visit.page("govern/key.html", view, status=400), changed=False)
        return Done(visit.go(f"/keys/{name}"), name, _detail(after), changed=after != before)

    async def _conflict(self, record: KeyRecord, fields: KeyFields, seen: str) -> KeyView:
        """Return the form as it was sent, to be sent once more, and what it would undo."""
        error = ConflictError(
            "Somebody else has changed this key since you opened the form. Nothing was saved.",
            mend="Look at what is different by now. Save once more to put yours in its place.",
        )
        view = await self._view(record, fields, error)
        return replace(view, changes=_differing(seen, _fields_of(record)))

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
        view = KeyView(line, fields, await self._today(record.name), ROLES, doubt, *said)
        return replace(view, errors=_errors_of(error))

    async def _today(self, name: str) -> UsageFigures:
        midnight = self._desk.now().replace(hour=0, minute=0, second=0, microsecond=0)
        query = UsageQuery(by=("key",), since=midnight, key=name, limit=1, durations=False)
        return (await self._usage.usage(query)).total


class _WrongFieldsError(UsageError):
    """Some fields of the form are wrong."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__("Nothing was saved: some fields are wrong.", mend="They say how.")
        self.errors = errors


class _ChangedError(Exception):
    """A key is not as the form was made from it."""

    def __init__(self, record: KeyRecord) -> None:
        super().__init__(record.name)
        self.record = record


def _seen(fields: KeyFields) -> str:
    """Return fields as a form carries what it was made from."""
    return ascii_json(asdict(fields))


def _differing(seen: str, now: KeyFields) -> list[FieldChange]:
    """Return what is not as somebody has seen it; nothing where that cannot be told."""
    try:
        before = as_object(read_json(seen))
    except ValueError:
        return []
    return [
        FieldChange(name.replace("_", " "), _said(before.get(name)), _said(value))
        for name, value in asdict(now).items()
        if before.get(name) != value
    ]


def _said(value: JsonValue) -> str:
    """Return what a field says, for people."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value.replace("\n", ", ") if isinstance(value, str) and value else "none"


def _errors_of(error: TurnoutError | None) -> Mapping[str, str]:
    return error.errors if isinstance(error, _WrongFieldsError) else {}


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
    """Return a record as the fields have it; `_WrongFieldsError` names all that are wrong."""
    errors: dict[str, str] = {}
    role = next((each.role for each in ROLES if each.role == fields.role), None)
    if role is None:
        errors["role"] = "Choose one of these roles."
    policies = tuple(dict.fromkeys(fields.policies.replace(",", " ").split()))
    if not policies:
        errors["policies"] = "A key has at least one policy."
    for name, said in (("name", fields.name or record.name), ("project", fields.project)):
        if not is_name(said):
            errors[name] = NAME_RULE
    limits = KeyLimits(
        _count(fields.requests_per_minute, "requests_per_minute", errors),
        _count(fields.concurrency, "concurrency", errors),
        _amount(fields.spend_per_day, errors),
    )
    expires_at = _expiry(fields.expires, record.expires_at, errors)
    if role is None or errors:
        raise _WrongFieldsError(errors)
    return replace(
        record,
        project=fields.project,
        policies=policies,
        role=role,
        admin=fields.admin,
        limits=limits,
        expires_at=expires_at,
    )


def _count(text: str, name: str, errors: dict[str, str]) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER and int(text)):
        errors[name] = "This must be a whole number above 0, or empty for no limit."
        return None
    return int(text)


def _amount(text: str, errors: dict[str, str]) -> Micros | None:
    if not text:
        return None
    with suppress(ValueError):
        amount = usd_to_micros(text)
        if amount > 0:
            return amount
    errors["spend_per_day"] = (
        "This must be an amount in US dollars above 0, such as 2.50, or empty for no limit."
    )
    return None


def _expiry(text: str, before: datetime | None, errors: dict[str, str]) -> datetime | None:
    """Return the end of a day, UTC; a day that was not changed keeps its own hour."""
    if not text:
        return None
    if before is not None and f"{before:%Y-%m-%d}" == text:
        return before
    try:
        day = datetime.strptime(text, "%Y-%m-%d").date()
    except ValueError:
        errors["expires"] = "This must be a date, such as 2027-01-31, or empty."
        return None
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
