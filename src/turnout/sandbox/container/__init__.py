"""Sandboxes by Podman or Docker."""
