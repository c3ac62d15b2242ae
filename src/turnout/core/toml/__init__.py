"""TOML, read from files and from strangers."""

from turnout.core.toml.reading import TomlError, read_toml

__all__ = ["TomlError", "read_toml"]
