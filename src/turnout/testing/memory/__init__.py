"""Stores in memory, for rooms that are tested by themselves."""
