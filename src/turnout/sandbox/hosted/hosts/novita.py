"""Machines of Novita, by its package `novita-sandbox`, whose interface is that of E2B."""

from turnout.sandbox.hosted.hosts.e2b import E2bProvider

__all__ = ["NovitaProvider"]


class NovitaProvider(E2bProvider):
    """Rents machines of Novita; the package to load is `novita_sandbox.core`."""

    name = "novita"
    names_hosts = False
