"""Reading TOML that nobody vouches for."""

from collections.abc import Mapping

from turnout.core.toml import TomlError
from turnout.core.toml import read_toml as parsed_toml
from turnout.sandbox.declared.collection import Collection

__all__ = ["read_toml"]


def read_toml(collection: Collection, path: str, text: str) -> Mapping[str, object]:
    """Return what a file holds; nothing, and a warning, where it cannot be read."""
    try:
        return parsed_toml(text)
    except TomlError as error:
        collection.warn(f"{path} cannot be read: {str(error)[:200]}")
        return {}
