"""A run's record as one document, for programs that read how agents work."""

from typing import Literal

__all__ = ["TrajectoryFormat"]

TrajectoryFormat = Literal["atif", "turnout"]
"""atif: the Agent Trajectory Interchange Format; turnout: the record as it is, and its result."""
