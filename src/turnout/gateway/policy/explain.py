"""The decision that a request would get, from what is on record: no gateway need run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from turnout.core.ids import ProviderName
from turnout.core.policies import Policy
from turnout.core.receipts import Decision
from turnout.gateway.catalog import Catalog
from turnout.gateway.decide import decide
from turnout.gateway.evidence import Sight, Snapshot
from turnout.gateway.exchange import Caller, InferenceRequest
from turnout.gateway.policy.book import PolicyBook, govern_under
from turnout.gateway.stages.admission import check_names
from turnout.gateway.tool_rules import judge_request, refuse_tools

__all__ = ["Explained", "Explainer"]


@dataclass(frozen=True, slots=True)
class Explained:
    """What would become of a request."""

    policy: Policy
    outside: tuple[str, ...]
    """Tools that it declares and the policy's list lacks: served, as the list is a dry run."""
    decision: Decision


@dataclass(frozen=True, slots=True)
class Explainer:
    """Decides without health and open tool calls: only a gateway that runs knows these."""

    book: PolicyBook
    catalog: Catalog
    evidence: Snapshot
    unset_keys: Callable[[Policy], Mapping[ProviderName, str]]
    """The variables that are not set, of those that a policy names for keys of providers."""

    def explain(
        self, caller: Caller, request: InferenceRequest, draft: Policy | None = None
    ) -> Explained:
        """Return what would become of a request, under a draft policy where one is given.

        `GatewayError` where it would be refused before a model is chosen.
        """
        if draft is None:
            policy, asked = self.book.govern(caller, request)
        else:
            policy, asked = govern_under(draft, request)
        judgement = judge_request(policy.tools, asked)
        refuse_tools(judgement)
        check_names(asked, self.catalog)
        sight = Sight(evidence=self.evidence, unset_keys=self.unset_keys(policy))
        return Explained(policy, judgement.outside, decide(asked, policy, self.catalog, sight))
