"""Addresses and keys of model servers as people write them, checked before anything is sent."""

import re
from typing import Final
from urllib.parse import urlsplit

__all__ = ["http_address", "sendable_key"]

_NO_ADDRESS: Final = re.compile(r"[\s\x00-\x1f\x7f\\]")
_NO_KEY: Final = re.compile("[^\x21-\x7e]")


def http_address(text: str) -> str:
    """Return a base URL without slashes at its end; ValueError where it is none or holds a key."""
    wrong = ValueError('must be an http or https address, such as "http://127.0.0.1:8000/v1"')
    try:
        parts = urlsplit(text)
        host = (parts.hostname or "").encode("idna")
        port = parts.port
    except ValueError:
        raise wrong from None
    if parts.scheme not in {"http", "https"} or not host or port == 0 or _NO_ADDRESS.search(text):
        raise wrong
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("must hold no key, user or query")
    return text.rstrip("/")


def sendable_key(text: str) -> str:
    """Return a key without white space around it; ValueError where no header can hold it."""
    key = text.strip()
    if _NO_KEY.search(key):
        raise ValueError("holds white space or another character that no key has")
    return key
