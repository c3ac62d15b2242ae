"""Webhooks of forges: whether they are genuine, and what they ask for."""
