"""The work on one run, from its base commit to its verdict."""

from turnout.runs.work.worker import RunWorker
from turnout.runs.work.workshop import Effort, RunEgress, Workshop

__all__ = ["Effort", "RunEgress", "RunWorker", "Workshop"]
