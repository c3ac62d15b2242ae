import json

import pytest

from turnout.sandbox.mirrors.npm_settings import read_npm_settings

LISTING = {
    "registry": "https://registry.example/npm/",
    "@mine:registry": "https://mine.example/",
    "@odd:registry": 3,
    "cafile": "/etc/own.pem",
    "https-proxy": None,
    "proxy": None,
}


def test_registries_are_known_by_their_scopes():
    """The one for all, and those of single scopes."""
    settings = read_npm_settings(json.dumps(LISTING).encode())
    assert settings is not None
    assert settings.registry.host == "registry.example"
    assert [(scope, place.host) for scope, place in settings.scoped] == [("@mine", "mine.example")]
    assert settings.certificates == "/etc/own.pem"
    assert not settings.proxy


def test_a_proxy_is_noticed():
    """A sandbox has no way to it."""
    settings = read_npm_settings(json.dumps({**LISTING, "proxy": "http://p.example"}).encode())
    assert settings is not None
    assert settings.proxy


@pytest.mark.parametrize("listing", [b"", b"[]", b"{}", b'{"registry": 3}', b"\xff"])
def test_what_makes_no_sense_is_no_setting(listing):
    """Npm may print anything."""
    assert read_npm_settings(listing) is None
