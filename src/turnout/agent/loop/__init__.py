"""The loop: a plan, then act steps until the model is done or a rule ends it."""

from turnout.agent.loop.strategy import LoopStrategy

__all__ = ["LoopStrategy"]
