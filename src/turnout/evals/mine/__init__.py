"""Evaluation items from a repository's own history: fixes that came with a test."""
