"""Which hosts a sandbox may reach."""

import re
from collections.abc import Iterable

from turnout.errors import ConfigError
from turnout.sandbox.base import HostRule

__all__ = ["canonical_host", "check_rule", "find_rule", "parse_rule", "rule_text", "split_target"]

_LONGEST_NAME = 253
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_PORT = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)
_LAST_PORT = 65_535


def canonical_host(text: str) -> str:
    """Return a host name in lower case and without the dot at its end.

    `ValueError`, whose text says why, where it is none. Whatever some resolver or URL parser reads
    as an address is none: a last label that is a number makes it one, and so do colons, brackets,
    percent signs and anything beyond ASCII.
    """
    if not text.isascii():
        raise ValueError("it is not ASCII: write an international name in its `xn--` form")
    if ":" in text or "[" in text:
        raise ValueError("it is an address: use the name of the host")
    name = text.lower().removesuffix(".")
    labels = name.split(".")
    if len(name) > _LONGEST_NAME or not all(map(_LABEL.fullmatch, labels)):
        raise ValueError("it is no host name")
    if _NUMBER.fullmatch(labels[-1]):
        raise ValueError("it is an address: use the name of the host")
    return name


def split_target(text: str, *, default_port: int | None = None) -> tuple[str, int]:
    """Return the two parts of `HOST:PORT`, as a request gives them; the host may be anything.

    `ValueError`, whose text says why, where it is not that.
    """
    host, colon, digits = text.rpartition(":")
    if colon and not digits.endswith("]"):
        return host, _port(digits)
    if default_port is None:
        raise ValueError("it names no port")
    return text, default_port


def _port(digits: str) -> int:
    if not _PORT.fullmatch(digits) or int(digits) > _LAST_PORT:
        raise ValueError("its port is no number from 1 to 65535")
    return int(digits)


def parse_rule(text: str, *, private: bool = False) -> HostRule:
    """Return the rule that a line of the configuration states.

    `example.org` is that host alone, `*.example.org` is every host below it but not itself;
    without a port such as in `example.org:8443` the ports are 443 and 80. `private`: it may resolve
    to an address that is not public. `ConfigError` where the text states no rule.
    """
    if "/" in text:
        raise _bad(text, "it is a URL or a path")
    host, colon, digits = text.rpartition(":")
    if not colon:
        return _not_inside(text, check_rule(HostRule(text, private=private)))
    try:
        port = _port(digits)
    except ValueError as error:
        raise _bad(text, str(error)) from None
    return _not_inside(text, check_rule(HostRule(host, (port,), private)))


def _not_inside(text: str, rule: HostRule) -> HostRule:
    """Refuse what programs inside never ask the proxy for."""
    if rule.host.rpartition(".")[2] == "localhost":
        raise _bad(text, "inside it is the sandbox itself, use the name that this machine has")
    return rule


def rule_text(rule: HostRule) -> str:
    """Return a rule as the configuration states it; several ports that are not usual at once."""
    usual = rule.ports == HostRule(rule.host).ports
    return rule.host if usual else f"{rule.host}:{','.join(map(str, rule.ports))}"


def check_rule(rule: HostRule) -> HostRule:
    """Return the rule in its canonical form; `ConfigError` where it is none."""
    below = rule.host.startswith("*.")
    try:
        name = canonical_host(rule.host[2:] if below else rule.host)
    except ValueError as error:
        raise _bad(rule.host, str(error)) from None
    if below and "." not in name and not rule.private:
        raise _bad(rule.host, "it would allow almost everything")
    if not rule.ports or not all(1 <= port <= _LAST_PORT for port in rule.ports):
        raise _bad(rule.host, "its ports are no numbers from 1 to 65535")
    return HostRule(f"*.{name}" if below else name, rule.ports, rule.private)


def _bad(text: str, why: str) -> ConfigError:
    return ConfigError(
        f"{text!r} cannot be allowed: {why}.",
        mend="Write a host name such as `api.example.org`, `*.example.org` or `example.org:8443`.",
    )


def find_rule(rules: Iterable[HostRule], host: str, port: int) -> HostRule | None:
    """Return a rule that admits a canonical host and a port; a private one before a public one."""
    found = None
    for rule in rules:
        if port in rule.ports and _covers(rule.host, host):
            if rule.private:
                return rule
            found = found or rule
    return found


def _covers(pattern: str, host: str) -> bool:
    """Whether a canonical host is the one, or below the one, that a rule names."""
    if pattern.startswith("*."):
        return host.endswith(pattern[1:])
    return host == pattern
