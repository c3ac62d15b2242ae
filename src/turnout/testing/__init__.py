"""Fakes for programs and tests that build on Turnout."""
