"""The policies in force: those of the store, and of a file what the store does not have."""

import logging
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from turnout.core.clock import Clock
from turnout.core.govern.revisions import default_among
from turnout.core.inference import RoutingAsk
from turnout.core.policies import Policy
from turnout.errors import GatewayError, StoreError
from turnout.gateway.exchange import Caller, InferenceRequest
from turnout.gateway.policy.aliases import aliased
from turnout.gateway.policy.ports import PolicyStore

__all__ = ["PolicyBook", "govern_under"]

_LOG = logging.getLogger(__name__)
_SECONDS: Final = 1.0
"""How old the view of the store may be."""


def govern_under(policy: Policy, request: InferenceRequest) -> tuple[Policy, InferenceRequest]:
    """Return a policy and the request as it stands under it: the alias of its model resolved."""
    return policy, aliased(policy, request) if policy.aliases else request


class PolicyBook:
    """What every request is governed by; asking it never waits.

    `own` are the policies of a file. One that the store also has is not used: the store wins.
    A key without a policy of its own has the one named `default`; the only policy of a file is
    that, whatever its name.
    """

    def __init__(
        self,
        own: Sequence[Policy] = (),
        store: PolicyStore | None = None,
    ) -> None:
        self._own = {policy.name: policy for policy in own or (Policy(),)}
        self._store = store
        self._seen = 0
        self._policies: Mapping[str, Policy] = dict(self._own)

    def govern(self, caller: Caller, request: InferenceRequest) -> tuple[Policy, InferenceRequest]:
        """Return the policy of a request, and the request with the alias of its model resolved.

        `GatewayError`: 403 for a policy that the caller's key is not granted, 404 for none.
        """
        return govern_under(self.resolve(caller, request.ask), request)

    def resolve(self, caller: Caller, ask: RoutingAsk) -> Policy:
        """Return the policy that the request chooses, else the caller's own.

        The errors of `govern`.
        """
        own = caller.policies[0] if caller.policies else self.default()
        wanted = ask.policy or own
        policy = self._policies.get(wanted)
        if policy is None:
            raise self._missing(wanted, caller, chosen=ask.policy is not None)
        if wanted != own and wanted not in caller.policies and not caller.admin:
            raise GatewayError(
                f"This key is not granted the policy `{wanted}`.",
                status=403,
                code="policy_not_granted",
                mend=f"It may choose {_listed(caller.policies or (own,))}.",
                param="routing.policy",
            )
        return policy

    def default(self) -> str:
        """Return the name of the policy of a key that has none of its own."""
        return default_among(self._policies, self._own)

    def policy(self, name: str) -> Policy | None:
        """Return the policy of that name; None where there is none."""
        return self._policies.get(name)

    def policies(self) -> tuple[Policy, ...]:
        """Return every policy in force."""
        return tuple(self._policies.values())

    def default_first(self) -> tuple[Policy, ...]:
        """Return every policy in force, that of keys without one before the others."""
        default = self.default()
        return tuple(sorted(self.policies(), key=lambda policy: policy.name != default))

    async def refresh(self) -> None:
        """Look into the store; `StoreError` where it cannot be read, and all stays as it was."""
        if self._store is None:
            return
        count = await self._store.count()
        if count == self._seen:
            return
        kept = {revision.policy.name: revision.policy for revision in await self._store.newest()}
        self._policies = {**self._own, **kept}
        self._seen = count

    async def keep_fresh(self, clock: Clock) -> None:
        """Look into the store again and again, until cancelled."""
        said = ""
        while self._store is not None:
            await clock.sleep(_SECONDS)
            try:
                await self.refresh()
                said = ""
            except StoreError as error:
                if str(error) != said:
                    said = str(error)
                    _LOG.warning("The policies in force stay as they are: %s", said)

    def _missing(self, wanted: str, caller: Caller, *, chosen: bool) -> GatewayError:
        """Return the refusal of what does not exist; no policy but the key's own is named."""
        granted = caller.policies or (self.default(),)
        if not chosen:
            said = f"The policy of this key, `{wanted}`, does not exist."
            mend = "Apply it with `turnout policy apply`, or give the key another."
        else:
            near = get_close_matches(wanted, granted, n=1)
            said = f"The policy `{wanted}` does not exist here."
            mend = f"Did you mean `{near[0]}`?" if near else f"This key has {_listed(granted)}."
        return GatewayError(
            said, status=404, code="policy_not_found", mend=mend, param="routing.policy"
        )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in dict.fromkeys(names))
