"""The desks at which is governed what a gateway does, whichever way that is asked for."""

from dataclasses import dataclass

from turnout.gateway.evaluations.desk import EvaluationDesk
from turnout.gateway.keys.desk import KeyDesk
from turnout.gateway.policy.desk import PolicyDesk
from turnout.store.audit import AuditStore
from turnout.wiring.usage import UsageOffice

__all__ = ["Governing"]


@dataclass(frozen=True, slots=True)
class Governing:
    """One of each, for the API and for the console."""

    policies: PolicyDesk
    keys: KeyDesk
    office: UsageOffice
    audit: AuditStore
    evaluations: EvaluationDesk
