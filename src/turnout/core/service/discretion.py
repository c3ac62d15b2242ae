"""What others may not read: where things are on this machine."""

import re
from collections.abc import Callable, Mapping

__all__ = ["discreet"]


def discreet(names: Mapping[str, str]) -> Callable[[str], str]:
    """Return what calls places by their names in a text: `names` leads from each path or URL to it.

    What lies in a place keeps its way from there; the root of all files is no place.
    """
    places = sorted((place for place in names if place.strip("/")), key=len, reverse=True)
    if not places:
        return str
    known = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, places))})(?![\w-])")
    return lambda text: known.sub(lambda found: names[found[0]], text)
