"""Forges: what their webhooks ask for, and what they are told."""
