"""The strategy for small models: one prompt a candidate, the tests as judge."""

from turnout.agent.repair.strategy import RepairStrategy

__all__ = ["RepairStrategy"]
