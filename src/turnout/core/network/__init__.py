"""The network as values: no connection is made here."""
