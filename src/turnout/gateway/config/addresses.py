"""Addresses and keys of model servers as people write them, checked before anything is sent."""

import re
from typing import Final
from urllib.parse import urlsplit

__all__ = ["http_address", "sendable_key", "variable_of_key"]

_NO_ADDRESS: Final = re.compile(r"[\s\x00-\x1f\x7f\\]")
_NO_KEY: Final = re.compile("[^\x21-\x7e]")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_LIKE_A_KEY: Final = re.compile(
    r"(?:AKIA|AIza|gh[a-z]_|gsk_|hf_|sk_|r8_|xai_).{12,}|(?=.*[a-z])(?=.*[0-9])[A-Za-z0-9]{32,}"
)
"""Text that could name a variable and is far more likely to be a key."""


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


def variable_of_key(text: str) -> str:
    """Return the name of a variable; ValueError, without the text, where it may be the key."""
    if not _VARIABLE.fullmatch(text) or _LIKE_A_KEY.fullmatch(text):
        raise ValueError(
            "must name the variable that holds the key, such as ACME_API_KEY; "
            "what stands there looks like the key itself"
        )
    return text
