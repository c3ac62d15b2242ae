"""`pyproject.toml`: the project's own table, dependency groups, and those of tools."""

import re
from collections.abc import Iterator, Mapping

from packaging.utils import canonicalize_name

from turnout.sandbox.declared.collection import Collection, strings, table
from turnout.sandbox.declared.plain import is_test_group
from turnout.sandbox.declared.poetry import read_poetry
from turnout.sandbox.declared.toml import read_toml

__all__ = ["build_requirements", "read_pyproject"]

_PATH = "pyproject.toml"
_SELF = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s*\[([^\]]*)\]\s*")


def read_pyproject(collection: Collection, content: Mapping[str, object]) -> None:
    """Take dependencies and what extras and groups for tests ask for."""
    project = table(content, "project")
    collection.name_project(project.get("name"))
    uv = table(content, "tool", "uv")
    collection.builds |= bool(table(content, "build-system")) and uv.get("package") is not False
    for line in _lines(collection, content):
        collection.take(_PATH, line)
    read_poetry(collection, content, _PATH)


def build_requirements(texts: Mapping[str, str]) -> tuple[str, ...]:
    """Return what the build backend of a project needs, as far as it is plain."""
    collection = Collection()
    content = read_toml(collection, _PATH, texts.get(_PATH, ""))
    for line in strings(table(content, "build-system").get("requires")):
        collection.take(_PATH, line)
    return collection.finish().requirements


def _lines(collection: Collection, content: Mapping[str, object]) -> Iterator[str]:
    project, groups = table(content, "project"), table(content, "dependency-groups")
    yield from strings(project.get("dependencies"))
    extras = table(project, "optional-dependencies")
    yield from _extras(collection, extras, [name for name in extras if is_test_group(name)])
    for name in filter(is_test_group, groups):
        yield from _group(groups, name, set())
    yield from strings(table(content, "tool", "uv").get("dev-dependencies"))
    pdm = table(content, "tool", "pdm", "dev-dependencies")
    for name in filter(is_test_group, pdm):
        yield from strings(pdm[name])
    hatch = table(content, "tool", "hatch", "envs")
    for name in hatch:
        if name == "default" or name.startswith("hatch-test") or is_test_group(name):
            yield from strings(table(hatch, name).get("dependencies"))
            yield from strings(table(hatch, name).get("extra-dependencies"))


def _extras(
    collection: Collection, extras: Mapping[str, object], wanted: list[str]
) -> Iterator[str]:
    """Yield the lines of extras, those that the project asks of itself included."""
    known = {canonicalize_name(name): name for name in extras}
    seen = set(wanted)
    while wanted:
        for line in strings(extras[wanted.pop()]):
            itself = _SELF.fullmatch(line)
            if itself is None or canonicalize_name(itself[1]) != collection.project:
                yield line
                continue
            asked = {canonicalize_name(part.strip()) for part in itself[2].split(",")}
            more = {known[name] for name in asked & known.keys()} - seen
            seen |= more
            wanted += sorted(more)


def _group(groups: Mapping[str, object], name: str, seen: set[str]) -> Iterator[str]:
    """Yield a dependency group's lines, with those of the groups that it includes."""
    if name in seen:
        return
    seen.add(name)
    value = groups.get(name)
    yield from strings(value)
    for item in value if isinstance(value, list) else ():
        included = item.get("include-group") if isinstance(item, dict) else None
        if isinstance(included, str):
            yield from _group(groups, included, seen)
