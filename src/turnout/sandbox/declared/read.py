"""Reading all that a repository declares."""

from collections.abc import Iterable, Mapping

from turnout.sandbox.declared.collection import Collection, Declared, table
from turnout.sandbox.declared.lists import is_list, read_list
from turnout.sandbox.declared.locks import is_lock, read_lock
from turnout.sandbox.declared.poetry import as_requirement
from turnout.sandbox.declared.pyproject import read_pyproject
from turnout.sandbox.declared.setup_cfg import read_setup_cfg
from turnout.sandbox.declared.toml import read_toml

__all__ = ["declared"]


def declared(texts: Mapping[str, str], *, built: Iterable[str] = ()) -> Declared:
    """Read the requirements out of a repository's files, given by their paths.

    `built` are lines that a build of the project has told beside. Where lock files are all there
    is, what they name is what is needed.
    """
    collection = Collection()
    if "pyproject.toml" in texts:
        text = texts["pyproject.toml"]
        read_pyproject(collection, read_toml(collection, "pyproject.toml", text))
    if "setup.cfg" in texts:
        read_setup_cfg(collection, texts["setup.cfg"])
    collection.builds |= "setup.py" in texts
    if "Pipfile" in texts:
        _read_pipfile(collection, texts["Pipfile"])
    for line in built:
        collection.take("the project's metadata", line)
    for path in sorted(filter(is_list, texts)):
        read_list(collection, path, texts)
    for path in sorted(filter(is_lock, texts)):
        read_lock(collection, path, texts[path])
    if not collection.anything:
        collection.take_pins()
    return collection.finish()


def _read_pipfile(collection: Collection, text: str) -> None:
    content = read_toml(collection, "Pipfile", text)
    for section in ("packages", "dev-packages"):
        for name, value in table(content, section).items():
            if isinstance(value, str | dict):
                collection.take("Pipfile", as_requirement(name, value))
