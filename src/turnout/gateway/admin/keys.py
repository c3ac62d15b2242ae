"""`/keys`: made, listed, changed and revoked."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path, Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from turnout.core.govern.keys import KeyLimits, KeyRecord, Role
from turnout.core.money import Micros
from turnout.errors import UsageError
from turnout.gateway.admin.callers import AdminDep, CallerDep, admin_required
from turnout.gateway.admin.errors import REFUSALS
from turnout.gateway.keys.desk import KeyDesk, KeyState, state_of

__all__ = ["KeyChange", "KeyIn", "KeyOut", "KeysOut", "NewKeyOut", "keys_router"]

_MOST = 2**31 - 1
_MOST_SPEND = 10**15

_Name = Annotated[str, Field(min_length=1, max_length=64, description="Unique for ever.")]
_Project = Annotated[
    str, Field(min_length=1, max_length=64, description="Whose usage it counts as.")
]
_PathName = Annotated[str, Path(min_length=1, max_length=64, description="Name of the key.")]
_Policies = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=256)]],
    Field(min_length=1, max_length=100, description="Its own first, then those it may choose."),
]
# JSON has no moments: they are text.
_Moment = Annotated[AwareDatetime, Field(strict=False)]
_Count = Annotated[int, Field(ge=1, le=_MOST)]
_Spend = Annotated[int, Field(ge=1, le=_MOST_SPEND, description="Micro-USD.")]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class KeyIn(_Body):
    """A key to be made; a limit that is left out is none."""

    name: _Name
    project: _Project = "default"
    policies: _Policies = Field(default_factory=lambda: ["default"])
    requests_per_minute: _Count | None = None
    concurrency: _Count | None = None
    spend_per_day_micros: _Spend | None = None
    admin: bool = False
    role: Role = "models"
    expires_at: _Moment | None = None


class KeyChange(_Body):
    """What is to change; what is left out stays, a limit that is null goes."""

    project: _Project | None = None
    policies: _Policies | None = None
    requests_per_minute: _Count | None = None
    concurrency: _Count | None = None
    spend_per_day_micros: _Spend | None = None
    admin: bool | None = None
    role: Role | None = None
    expires_at: _Moment | None = None

    def of(self, record: KeyRecord) -> KeyRecord:
        """Return the record, changed."""
        given, limits = self.model_fields_set, record.limits
        spend = self.spend_per_day_micros
        return replace(
            record,
            project=record.project if self.project is None else self.project,
            policies=record.policies if self.policies is None else tuple(self.policies),
            admin=record.admin if self.admin is None else self.admin,
            role=record.role if self.role is None else self.role,
            expires_at=self.expires_at if "expires_at" in given else record.expires_at,
            limits=KeyLimits(
                self.requests_per_minute
                if "requests_per_minute" in given
                else limits.requests_per_minute,
                self.concurrency if "concurrency" in given else limits.concurrency,
                (None if spend is None else Micros(spend))
                if "spend_per_day_micros" in given
                else limits.spend_per_day,
            ),
        )


class KeyOut(BaseModel):
    """A key, as it is kept: all but the key itself."""

    name: str
    project: str
    policies: list[str]
    requests_per_minute: int | None
    concurrency: int | None
    spend_per_day_micros: int | None
    admin: bool
    role: Role
    hint: str = Field(description="The first and the last characters of the key.")
    state: KeyState
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None

    @classmethod
    def of(cls, record: KeyRecord, now: datetime) -> "KeyOut":
        """Return what is shown of a key."""
        limits = record.limits
        return cls(
            name=record.name,
            project=record.project,
            policies=list(record.policies),
            requests_per_minute=limits.requests_per_minute,
            concurrency=limits.concurrency,
            spend_per_day_micros=limits.spend_per_day,
            admin=record.admin,
            role=record.role,
            hint=record.hint,
            state=state_of(record, now),
            created_at=record.created_at,
            expires_at=record.expires_at,
            revoked_at=record.revoked_at,
        )


class NewKeyOut(KeyOut):
    """A key that was made."""

    key: str = Field(description="Shown this once: only its hash is kept.")


class KeysOut(BaseModel):
    """All keys, by name."""

    keys: list[KeyOut]


def keys_router(desk: KeyDesk) -> APIRouter:
    """Return the routes: a key reads itself, an admin key reads and changes all."""
    router = APIRouter(prefix="/keys", tags=["keys"], responses=REFUSALS)

    @router.get("")
    async def list_keys(caller: CallerDep) -> KeysOut:
        """List the keys; without admin rights, the caller's own."""
        now = desk.now()
        seen = [r for r in await desk.list() if caller.admin or r.name == caller.key]
        return KeysOut(keys=[KeyOut.of(record, now) for record in seen])

    @router.post("", status_code=201)
    async def create_key(body: KeyIn, _: AdminDep, response: Response) -> NewKeyOut:
        """Make a key; the answer shows it this once."""
        limits = KeyLimits(
            body.requests_per_minute,
            body.concurrency,
            None if body.spend_per_day_micros is None else Micros(body.spend_per_day_micros),
        )
        wanted = KeyRecord(
            name=body.name,
            project=body.project,
            policies=tuple(body.policies),
            limits=limits,
            created_at=desk.now(),
            hint="",
            admin=body.admin,
            role=body.role,
            expires_at=_in_utc(body.expires_at),
        )
        issued = await desk.create(wanted)
        response.headers["location"] = f"/v1/keys/{quote(body.name)}"
        shown = KeyOut.of(issued.record, desk.now())
        return NewKeyOut(**shown.model_dump(), key=issued.key)

    @router.get("/{name}")
    async def read_key(name: _PathName, caller: CallerDep) -> KeyOut:
        """Read one key; without admin rights, the caller's own."""
        if name != caller.key and not caller.admin:
            raise admin_required()
        return KeyOut.of(await desk.get(name), desk.now())

    @router.patch("/{name}")
    async def change_key(name: _PathName, body: KeyChange, _: AdminDep) -> KeyOut:
        """Change what a key may do, at once in this process and within a second in others."""
        if body.expires_at is not None:
            body.expires_at = _in_utc(body.expires_at)
        return KeyOut.of(await desk.update(name, body.of), desk.now())

    @router.delete("/{name}")
    async def revoke_key(name: _PathName, _: AdminDep) -> KeyOut:
        """Shut a key for good."""
        return KeyOut.of(await desk.revoke(name), desk.now())

    return router


def _in_utc(moment: datetime | None) -> datetime | None:
    try:
        return None if moment is None else moment.astimezone(UTC)
    except OverflowError as error:
        raise UsageError("`expires_at` is out of reach.") from error
