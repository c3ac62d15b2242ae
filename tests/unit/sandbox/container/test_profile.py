"""The system call filter as container engines read it."""

import errno
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.sandbox.container.engines.profile import profile
from turnout.sandbox.walls.seccomp import JUDGED, MISSING, Judgement, machines, numbers

MACHINES = pytest.mark.parametrize("machine", machines())
ARGUMENTS = st.one_of(
    st.integers(0, (1 << 64) - 1),
    st.integers(0, 64),
    st.integers(0, 31).map(lambda bit: 1 << bit),
    st.sampled_from([value for how in JUDGED.values() for value in how.values]),
)
RULES = {machine: json.loads(profile(machine))["syscalls"] for machine in machines()}


def verdict(machine: str, name: str, *arguments: int) -> int:
    """Judge a call as the engine's library does: 0, or the error that it answers."""
    words = [*arguments, *[0] * (6 - len(arguments))]
    for rule in RULES[machine]:
        met = all(
            words[each["index"]] & each["value"] == each["valueTwo"]
            for each in rule.get("args", ())
        )
        if name in rule["names"] and met:
            return int(rule["errnoRet"])
    return 0


def wanted(how: Judgement, argument: int) -> int:
    """Judge the low half of an argument by the table."""
    low = argument & 0xFFFFFFFF
    refused = {
        "one_of": low not in how.values,
        "none_of": low in how.values,
        "no_bit_of": bool(low & how.values[0]),
    }
    return how.error if refused[how.kind] else 0


@MACHINES
@pytest.mark.parametrize("name", JUDGED)
@given(argument=ARGUMENTS)
def test_arguments_are_judged_as_in_the_table(machine: str, name: str, argument: int) -> None:
    """Whatever the upper half holds, which the kernel does not read."""
    how = JUDGED[name]
    arguments = [0] * how.argument + [argument]
    assert verdict(machine, name, *arguments) == wanted(how, argument)


@MACHINES
def test_calls_of_the_table_are_refused(machine: str) -> None:
    """Those that libraries can do without are missing; what is not named is allowed."""
    for name in numbers(machine).keys() - {*MISSING, *JUDGED}:
        assert verdict(machine, name) == errno.EPERM, name
    for name in MISSING:
        assert verdict(machine, name) == errno.ENOSYS, name
    assert verdict(machine, "read") == 0


@MACHINES
def test_one_numbering_of_calls_is_known(machine: str) -> None:
    """A library adds no other by itself, and engines know every key of the profile."""
    made = json.loads(profile(machine))
    assert made.keys() == {"defaultAction", "architectures", "syscalls"}
    assert made["defaultAction"] == "SCMP_ACT_ALLOW"
    assert len(made["architectures"]) == 1
    assert {rule["action"] for rule in made["syscalls"]} == {"SCMP_ACT_ERRNO"}
