"""Runs that outlive the processes that work on them."""
