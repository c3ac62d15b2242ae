"""Webhooks of forges: how they become runs of the service."""

from collections.abc import Callable, Sequence
from functools import partial

from fastapi import APIRouter

from turnout.errors import ConfigError, GatewayError, UsageError
from turnout.gateway.exchange import Caller
from turnout.runs.forges.desk import open_forges
from turnout.settings import Settings, secret_named, secret_value
from turnout.store.audit import AuditStore
from turnout.web.forges.routes import ForgeParts, forges_router
from turnout.web.runs.callers import member_scope
from turnout.web.runs.intake import RunParts
from turnout.wiring.gateway import Ground

__all__ = ["check_forges", "check_orders", "open_webhooks"]


async def open_webhooks(
    ground: Ground, runs: RunParts, named: Callable[[str], Caller]
) -> Sequence[APIRouter]:
    """Return the route of webhooks, where a forge is set up; `named` finds the holder of a key.

    `ConfigError` where the secret or the token of one is not set, or its key may order nothing.
    """
    forges = ground.settings.service.forges
    if not forges:
        return ()
    for forge in forges.values():
        secret_named(forge.secret_variable, what=f"the secret of the webhooks of {forge.name}")
        secret_named(forge.token_variable, what=f"the token of our account at {forge.name}")
        check_orders(partial(named, forge.key), f"service.forges.{forge.name}.key")
    opened = await ground.stack.enter_async_context(open_forges(forges, secret_value))
    parts = ForgeParts(
        forges=opened.by_name,
        secrets=secret_value,
        named=named,
        runs=runs,
        audit=AuditStore(ground.database).add,
        clock=ground.clock,
    )
    return (forges_router(parts),)


def check_orders(holder: Callable[[], Caller], setting: str) -> None:
    """Refuse (`ConfigError`) the key that a setting names where it may not order runs."""
    try:
        member_scope(holder())
    except GatewayError as error:
        raise ConfigError(f"`{setting}`: {error.message}", mend=error.mend) from error


def check_forges(settings: Settings) -> None:
    """Refuse (`ConfigError`) a forge whose repositories the service does not work on."""
    for forge in settings.service.forges.values():
        for path, name in forge.repositories.items():
            try:
                settings.service.repositories.check(name)
            except UsageError as error:
                raise ConfigError(
                    f"`service.forges.{forge.name}.repositories` says that {path!r} is {name!r}, "
                    "which is no repository of this service.",
                    mend=error.mend,
                ) from error
