"""The adapters of cloud accounts, loaded only where they are used."""

import sys

import pytest

from turnout.core.clock import SystemClock
from turnout.core.ids import ProviderName
from turnout.errors import MissingExtraError
from turnout.gateway.catalog import Account, Catalog, Provider
from turnout.testing.exchange import deployment
from turnout.wiring.accounts import open_accounts

VERTEX = Account("vertex", {"project": "p", "region": "r"})
BEDROCK = Account("bedrock", {"region": "r"})


def catalog(*used: str, **accounts: Account | None) -> Catalog:
    """Return providers with their accounts, and a deployment of each that is used."""
    providers = {
        ProviderName(name): Provider(ProviderName(name), "http://127.0.0.1:9", account=account)
        for name, account in accounts.items()
    }
    return Catalog(providers, tuple(deployment(f"{name}/m") for name in used))


def test_each_provider_with_an_account_gets_its_adapter():
    """Those without one, and those that nobody uses, get none."""
    accounts = {"az": Account("azure"), "aws": BEDROCK, "gcp": VERTEX, "plain": None}
    known = catalog(*accounts, **accounts, unused=BEDROCK)
    found = open_accounts(known, SystemClock())
    assert {name: type(each).__name__ for name, each in found.items()} == {
        "az": "AzureAccount",
        "aws": "BedrockAccount",
        "gcp": "VertexAccount",
    }


@pytest.mark.parametrize(
    ("account", "package", "extra"),
    [(BEDROCK, "botocore.session", "aws"), (VERTEX, "google.auth", "google")],
)
def test_a_package_that_is_missing_is_named_with_its_extra(account, package, extra, monkeypatch):
    """Only by those who use the account."""
    module = f"turnout.gateway.providers.accounts.{account.kind}"
    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=package.partition(".")[0]) as failure:
        open_accounts(catalog("cloud", cloud=account), SystemClock())
    assert failure.value.mend == f"Run `pip install 'turnout[{extra}]'`."
    assert open_accounts(catalog(cloud=account), SystemClock()) == {}
