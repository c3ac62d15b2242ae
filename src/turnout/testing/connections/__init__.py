"""Connections without a server, and a server to connect to (`server`, which takes the SDK)."""

from turnout.testing.connections.fakes import FakeConnections, MemoryTurns, fake_tool

__all__ = ["FakeConnections", "MemoryTurns", "fake_tool"]
