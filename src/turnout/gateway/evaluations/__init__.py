"""Evaluations that decisions rest on: applied, looked at before that, and taken back."""
