"""A git server that asks for a token, on real git, for tests."""

from turnout.testing.git.server import GitServer

__all__ = ["GitServer"]
