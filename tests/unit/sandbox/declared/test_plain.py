import pytest

from turnout.errors import ConfigError
from turnout.sandbox.declared.plain import applicable, explicit, pinned


@pytest.mark.parametrize("line", ["foo @ https://example.org/foo", "-e .", "foo bar", "x" * 400])
def test_explicit_requirements_must_be_plain(line):
    """A user's own list is refused as a whole, with the mend."""
    with pytest.raises(ConfigError, match="test requirement") as caught:
        explicit(["attrs", line])
    assert caught.value.mend


def test_explicit_requirements_are_normalised_and_sorted():
    """The same set in another spelling is the same environment."""
    assert explicit(["Zope.Interface", "attrs"]) == explicit(["attrs", "zope-interface"])


def test_markers_are_judged_for_the_sandbox_and_dropped():
    """The interpreter inside decides, not the one that runs us."""
    requirements = [
        'a; python_version < "3.9"',
        'b; sys_platform == "linux"',
        "c",
        'd; extra == "x"',
    ]
    inside = {"python_version": "3.8", "sys_platform": "linux"}
    assert applicable(requirements, inside) == ("a", "b", "c")


def test_a_marker_that_asks_for_an_extra_for_tests_holds():
    """Metadata names extras in markers; those for tests are wanted, others are not."""
    lines = [
        'a; extra == "Test"',
        'b; extra == "docs"',
        'c; python_version < "3" and extra == "dev"',
    ]
    assert applicable(lines, {"os_name": "posix"}) == ("a",)


def test_of_several_pins_the_one_counts_whose_marker_holds():
    """Where two hold at once, neither is known to be meant."""
    pins = [
        'a==1; python_version < "3.9"',
        'a==2; python_version >= "3.9"',
        "b==1",
        'b==2; sys_platform == "linux"',
        "c==3",
    ]
    environment = {"python_version": "3.11", "sys_platform": "linux"}
    assert pinned(pins, environment) == ("a==2", "c==3")
