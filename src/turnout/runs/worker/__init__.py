"""The work on one run, from its base commit to its verdict."""

from turnout.runs.worker.worker import RunWorker
from turnout.runs.worker.workshop import Effort, RunEgress, Workshop

__all__ = ["Effort", "RunEgress", "RunWorker", "Workshop"]
