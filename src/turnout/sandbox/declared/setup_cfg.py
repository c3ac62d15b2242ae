"""`setup.cfg`: what setuptools reads there."""

from collections.abc import Iterator
from configparser import ConfigParser, Error

from turnout.sandbox.declared.collection import Collection
from turnout.sandbox.declared.plain import is_test_group

__all__ = ["read_setup_cfg"]

_PATH = "setup.cfg"
_EXTRAS = "options.extras_require"


def read_setup_cfg(collection: Collection, text: str) -> None:
    """Take requirements and what extras for tests ask for."""
    parser = ConfigParser(strict=False, default_section="\0")
    try:
        parser.read_string(text)
    except Error as error:
        collection.warn(f"{_PATH} cannot be read: {error.message.splitlines()[0][:200]}")
        return
    collection.name_project(collection.project or parser.get("metadata", "name", fallback=""))
    keys = [("options", "install_requires"), ("options", "tests_require")]
    if parser.has_section(_EXTRAS):
        keys += [(_EXTRAS, name) for name in parser.options(_EXTRAS) if is_test_group(name)]
    for section, key in keys:
        for line in _lines(parser, section, key):
            # Whatever such a file holds is asked of the build itself.
            if not line.startswith(("file:", "attr:")):
                collection.take(_PATH, line)


def _lines(parser: ConfigParser, section: str, key: str) -> Iterator[str]:
    if not parser.has_option(section, key):
        return
    try:
        value = parser.get(section, key)
    except Error:
        value = parser.get(section, key, raw=True)
    for line in value.splitlines():
        told = line.partition(" #")[0].strip()
        if told and not told.startswith("#"):
            yield told
