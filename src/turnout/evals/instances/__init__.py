"""Evaluation items: one task each, with the tests that judge it."""
