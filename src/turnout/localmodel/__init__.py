"""The embedded default model: fetched once, verified, served on loopback."""
