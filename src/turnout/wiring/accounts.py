"""The cloud accounts through which providers are reached."""

import importlib
from collections.abc import Mapping
from typing import Final

from turnout.core.clock import Clock
from turnout.errors import MissingExtraError
from turnout.gateway.catalog import Catalog
from turnout.gateway.providers.authenticator import Authenticator

__all__ = ["open_accounts"]

_ADAPTERS: Final = "turnout.gateway.providers.accounts"
_EXTRAS: Final = {"bedrock": "aws", "vertex": "google"}
"""What an adapter is installed with; the one for Azure needs nothing more."""


def open_accounts(catalog: Catalog, clock: Clock) -> Mapping[str, Authenticator]:
    """Return the adapter of each provider with an account that a deployment uses, by its name.

    Nothing is asked of any account yet. `MissingExtraError` where a package is not installed.
    """
    accounts: dict[str, Authenticator] = {}
    for name in sorted({deployment.provider for deployment in catalog.deployments}):
        provider = catalog.providers[name]
        if provider.account is None:
            continue
        kind = provider.account.kind
        try:
            module = importlib.import_module(f"{_ADAPTERS}.{kind}")
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                f"The provider {name} needs the package {error.name}, which is not installed.",
                mend=f"Run `pip install 'turnout[{_EXTRAS.get(kind, kind)}]'`.",
            ) from None
        accounts[name] = module.open_account(provider, clock)
    return accounts
