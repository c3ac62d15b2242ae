"""Poetry's own tables, whose version constraints are not those of the standard."""

import re
from collections.abc import Iterator, Mapping

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from turnout.sandbox.declared.collection import Collection, strings, table, tables
from turnout.sandbox.declared.plain import is_test_group

__all__ = ["as_requirement", "read_poetry", "standard_constraint"]

_RELEASE = re.compile(r"v?(\d+(?:\.\d+)*)(.*)", re.DOTALL)
_ELSEWHERE = ("git", "hg", "path", "url", "file", "ref")


def read_poetry(collection: Collection, content: Mapping[str, object], path: str) -> None:
    """Take the dependencies of `[tool.poetry]` and of its groups for tests."""
    poetry = table(content, "tool", "poetry")
    collection.builds &= poetry.get("package-mode") is not False
    collection.name_project(collection.project or poetry.get("name"))
    extras = table(poetry, "extras")
    wanted = {
        name for extra in filter(is_test_group, extras) for name in strings(extras.get(extra))
    }
    for name, value in _dependencies(poetry, own=not table(content, "project")):
        for one in [value] if isinstance(value, str | dict) else tables(value):
            if isinstance(one, dict) and one.get("optional") is True and name not in wanted:
                continue
            collection.take(path, as_requirement(name, one))


def _dependencies(poetry: Mapping[str, object], *, own: bool) -> Iterator[tuple[str, object]]:
    """Yield name and value; the project's own only where the standard table does not have them."""
    sections = [table(poetry, "dev-dependencies")]
    if own:
        sections.append(table(poetry, "dependencies"))
    groups = table(poetry, "group")
    sections += [table(groups, name, "dependencies") for name in filter(is_test_group, groups)]
    for section in sections:
        yield from ((name, value) for name, value in section.items() if name.lower() != "python")


def as_requirement(name: str, value: str | Mapping[str, object]) -> str:
    """Return an entry of a table of dependencies as a standard line.

    It is no plain one where the package does not come from an index.
    """
    if isinstance(value, str):
        return f"{name} {standard_constraint(value)}"
    elsewhere = next((key for key in _ELSEWHERE if key in value), None)
    if elsewhere is not None:
        return f"{name} @ {value[elsewhere]}"
    extras = ",".join(strings(value.get("extras")))
    version = value.get("version", "*")
    line = f"{name}[{extras}]" if extras else name
    line += f" {standard_constraint(version)}" if isinstance(version, str) else " ?"
    markers = [f"({marker})" for marker in _markers(value)]
    return f"{line} ; {' and '.join(markers)}" if markers else line


def _markers(value: Mapping[str, object]) -> Iterator[str]:
    for key in ("markers", "python", "platform"):
        text = value.get(key)
        if not isinstance(text, str):
            continue
        if key == "markers":
            yield text
        elif key == "platform":
            yield f'sys_platform == "{text}"'
        else:
            for part in filter(None, standard_constraint(text).split(",")):
                operator = part.rstrip("0123456789.*")
                version = part.removeprefix(operator)
                name = "python_full_version" if version.count(".") > 1 else "python_version"
                yield f'{name} {operator} "{version}"'


def standard_constraint(constraint: str) -> str:
    """Return Poetry's version constraint as the standard writes it.

    One that means several ranges at once, for which the standard has no word, is dropped; one that
    cannot be read is returned as it is.
    """
    if "|" in constraint:
        return ""
    joined = re.sub(r"(?<=[<>=~^!])\s+", "", constraint.strip())
    parts = [_part(part) for part in re.split(r"[,\s]+", joined) if part]
    standard = ",".join(part for part in parts if part)
    try:
        SpecifierSet(standard)
    except InvalidSpecifier:
        return constraint
    return standard


def _part(part: str) -> str:
    if part == "*":
        return ""
    if part.startswith("~="):
        return part
    if part[0] in "^~":
        return _range(part[0], part[1:])
    if part[0].isdigit() or part[0] == "v":
        return f"=={part.removeprefix('v')}"
    return f"={part}" if part[0] == "=" and not part.startswith("==") else part


def _range(operator: str, version: str) -> str:
    """Return from the version on up to the next that may differ in kind."""
    found = _RELEASE.fullmatch(version)
    if found is None:
        return f"{operator}{version}"
    numbers = [int(number) for number in found[1].split(".")]
    if operator == "~":
        last = min(1, len(numbers) - 1)
    else:
        last = next((n for n, number in enumerate(numbers) if number), len(numbers) - 1)
    end = [*numbers[:last], numbers[last] + 1]
    return f">={version.removeprefix('v')},<{'.'.join(map(str, end))}"
