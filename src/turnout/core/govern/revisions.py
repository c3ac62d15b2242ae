"""Policies as they are kept: every change is a numbered revision."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from pydantic import TypeAdapter

from turnout.core.json import ascii_json
from turnout.core.policies import Policy

__all__ = ["DEFAULT_POLICY", "PolicyRevision", "decode_policy", "default_among", "encode_policy"]

DEFAULT_POLICY = "default"
"""Name of the policy of a key that has none of its own."""


def default_among(known: Collection[str], filed: Collection[str]) -> str:
    """Return the name of the policy of a key that has none of its own.

    Where none of the `known` ones is named `default`, the only one of the file is it: its name
    must not make it go unused.
    """
    if DEFAULT_POLICY not in known and len(filed) == 1:
        return next(iter(filed))
    return DEFAULT_POLICY


@dataclass(frozen=True, slots=True)
class PolicyRevision:
    """One revision of one policy; never changed once it is written."""

    policy: Policy
    """With its name and number: the first revision is 1; 0 is a file that was not applied."""
    author: str
    """Name of the key, or of the user of the command line."""
    at: datetime
    note: str = ""
    restores: int | None = None
    """The revision whose content it brought back; None where it is no rollback."""


@cache
def _adapter() -> TypeAdapter[Policy]:
    return TypeAdapter(Policy)


def encode_policy(policy: Policy) -> str:
    """Return `policy` as one JSON object in ASCII."""
    return ascii_json(_adapter().dump_python(policy, mode="json"))


def decode_policy(text: str | bytes) -> Policy:
    """Return the policy that `encode_policy` wrote; ValueError where it is none."""
    return _adapter().validate_python(json.loads(text))
