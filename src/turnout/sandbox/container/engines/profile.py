"""The system call filter in the form that container engines take, from the table of `seccomp`.

An engine's library compares whole arguments of 64 bits, one comparison a rule, and knows no rule
that allows where everything is allowed that no rule names. So every judgement is turned into rules
that refuse: bits under a mask that equal a value.
"""

import errno
import json
from collections.abc import Iterator

from turnout.sandbox.walls.seccomp import JUDGED, MISSING, Judgement, numbers

__all__ = ["profile"]

_ARCHITECTURES = {"x86_64": "SCMP_ARCH_X86_64", "aarch64": "SCMP_ARCH_AARCH64"}
"""No other numbering of calls: one that comes by another ends its thread."""

_BITS = 32
_ALL_BITS = (1 << _BITS) - 1


def _outside(allowed: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Yield masks and values that together match every number of 32 bits but the allowed ones.

    Each is a number that parts with the allowed ones at some bit, whatever its lower bits are.
    """
    found = {
        (_ALL_BITS >> bit << bit, ((number >> bit) ^ 1) << bit)
        for number in allowed
        for bit in range(_BITS)
    }
    for mask, value in sorted(found):
        if not any(number & mask == value for number in allowed):
            yield mask, value


def _refused(how: Judgement) -> list[tuple[int, int]]:
    """Return masks and values that match the refused arguments."""
    match how.kind:
        case "one_of":
            return list(_outside(how.values))
        case "none_of":
            return [(_ALL_BITS, value) for value in how.values]
        case "no_bit_of":
            bits = [1 << bit for bit in range(_BITS) if how.values[0] >> bit & 1]
            return [(bit, bit) for bit in bits]


def _rule(names: list[str], error: int) -> dict[str, object]:
    return {"names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": error}


def _judged(name: str, how: Judgement) -> Iterator[dict[str, object]]:
    for mask, value in _refused(how):
        comparison = {
            "index": how.argument,
            "op": "SCMP_CMP_MASKED_EQ",
            "value": mask,
            "valueTwo": value,
        }
        yield {**_rule([name], how.error), "args": [comparison]}


def profile(machine: str) -> bytes:
    """Return the filter for one of `seccomp.machines` as the JSON of an OCI profile.

    Names that the engine's library is too old to know have no effect there.
    """
    refused = sorted(numbers(machine).keys() - {*MISSING, *JUDGED})
    rules = [_rule(refused, errno.EPERM), _rule(list(MISSING), errno.ENOSYS)]
    for name, how in JUDGED.items():
        rules += _judged(name, how)
    made = {
        "defaultAction": "SCMP_ACT_ALLOW",
        "architectures": [_ARCHITECTURES[machine]],
        "syscalls": rules,
    }
    return json.dumps(made, indent=1).encode()
