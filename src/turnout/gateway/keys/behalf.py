"""Model calls of the service's own workers, charged to whoever ordered the work."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from turnout.core.inference import BEHALF_HEADER
from turnout.errors import GatewayError
from turnout.gateway.access import Authenticate, sent_key
from turnout.gateway.exchange import Caller

__all__ = ["behalf_of", "token_for", "with_workers"]

_LOCAL: Final = "local"
_KEYLESS: Final = frozenset({_LOCAL, "shared"})
"""Callers without a key of their own; whoever serves vouches for them."""


def token_for(key: str, project: str, policy: str | None) -> str:
    """Return what a worker sends in place of a key; it opens nothing but the private socket.

    With a key of the role `worker` it goes in `BEHALF_HEADER`.
    """
    return f"{key}/{project}/{policy or ''}"


def behalf_of(named: Callable[[str], Caller], default: Callable[[], str]) -> Authenticate:
    """Admit whoever reaches the private socket, as the caller that its token names.

    `named` finds the holder of a key, `default` is the policy of one that has none. A key that was
    revoked meanwhile opens nothing (401), a policy that it may no longer choose neither (403).
    """

    def authenticate(headers: Mapping[str, str]) -> Caller:
        key, _, rest = sent_key(headers).partition("/")
        project, _, policy = rest.partition("/")
        caller = Caller(key, role="approver") if key in _KEYLESS else named(key)
        granted = caller.policies or (default(),)
        if policy and policy not in granted and not caller.admin:
            raise GatewayError(
                f"The key {key!r} is no longer granted the policy `{policy}`.",
                status=403,
                code="policy_not_granted",
                mend="Grant it with `turnout keys update`, or order the work again without it.",
            )
        chosen = (policy, *caller.policies) if policy else caller.policies
        return replace(caller, project=project or caller.project, policies=chosen)

    return authenticate


def with_workers(own: Authenticate, behalf: Authenticate) -> Authenticate:
    """Let workers on other machines ask models for whoever ordered what they work on.

    `own` tells callers by their key. One of the role `worker` is nobody by itself: what it asks
    is asked by whom its header names, as `behalf` finds them. So it is for programs of this
    machine while no key was ever made. Anybody else who sends the header is refused (403).
    """

    def authenticate(headers: Mapping[str, str]) -> Caller:
        caller, token = own(headers), headers.get(BEHALF_HEADER)
        if caller.role != "worker" and token is None:
            return caller
        if token is None or (caller.role != "worker" and caller.key != _LOCAL):
            raise GatewayError(
                "A worker's key asks models for whoever ordered a run, and no other key does."
                if token is None
                else "This key does not ask models for others.",
                status=403,
                code="role_not_allowed",
                mend="Workers take a key of the role `worker`, everybody else one of their own.",
            )
        return behalf({"authorization": f"Bearer {token}"})

    return authenticate
