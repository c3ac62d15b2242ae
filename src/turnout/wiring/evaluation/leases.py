"""Keys of the evaluation's own gateway, for commands that run as arms."""

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from turnout.core.receipts import Receipt
from turnout.errors import GatewayError
from turnout.evals.trials.arms import Arm
from turnout.evals.trials.service import KEY
from turnout.gateway.access import sent_key
from turnout.gateway.exchange import Caller

__all__ = ["Leased", "ProgramLeases"]

_CALLS: Final = 10_000
"""Receipts of one command that are kept."""


@dataclass(slots=True)
class Leased:
    """What one command is told, and what it has asked."""

    variables: Mapping[str, str] = field(repr=False)
    receipts: list[Receipt] = field(default_factory=list)


@dataclass(slots=True)
class ProgramLeases:
    """Gives out keys, each for one command and as long as that runs."""

    caller_of: Callable[[Arm, str], Caller]
    """Who asks with a key of that name."""
    base_url: str = ""
    """Of the gateway, without `/v1`; empty before it serves."""
    _callers: dict[str, Caller] = field(default_factory=dict, repr=False)
    _leased: dict[str, Leased] = field(default_factory=dict, repr=False)
    """By the name of the key."""

    @contextmanager
    def lease(self, arm: Arm, key: str) -> Iterator[Leased]:
        """Give out a key that opens the gateway until the block ends."""
        token, name = secrets.token_urlsafe(24), f"{KEY}-{key[:12]}"
        leased = Leased(_variables(self.base_url, token))
        self._callers[token], self._leased[name] = self.caller_of(arm, name), leased
        try:
            yield leased
        finally:
            del self._callers[token], self._leased[name]

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        """Admit the holder of a key that is given out; `GatewayError` (401) refuses all others."""
        caller = self._callers.get(sent_key(headers))
        if caller is None:
            raise GatewayError(
                "The key of this gateway opens nothing any more, or never did.",
                status=401,
                code="invalid_api_key",
            )
        return caller

    def saw(self, receipt: Receipt) -> None:
        """Take note of a call, for the command that made it."""
        leased = self._leased.get(receipt.key)
        if leased is not None and len(leased.receipts) < _CALLS:
            leased.receipts.append(receipt)


def _variables(base_url: str, token: str) -> Mapping[str, str]:
    return {
        "OPENAI_BASE_URL": f"{base_url}/v1",
        "OPENAI_API_BASE": f"{base_url}/v1",
        "OPENAI_API_KEY": token,
        "ANTHROPIC_BASE_URL": base_url,
        "ANTHROPIC_API_KEY": token,
        "LLM_BASE_URL": f"{base_url}/v1",
        "LLM_API_KEY": token,
    }
