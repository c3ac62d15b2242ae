"""Sandboxes on rented machines, by the packages of their hosts."""
