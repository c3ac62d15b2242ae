"""Policies in force, and how they change."""
