"""Requests that somebody tries out in the playground."""
