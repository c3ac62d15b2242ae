"""Upstream adapters, one per API shape."""
