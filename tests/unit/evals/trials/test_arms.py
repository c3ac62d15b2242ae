"""What is compared, as it is written."""

import pytest

from turnout.errors import UsageError
from turnout.evals.trials.arms import Arm, ArmAsk, read_arms


@pytest.mark.parametrize(
    ("text", "ask"),
    [
        ("auto", ArmAsk("auto", "auto")),
        ("again=auto", ArmAsk("again", "auto")),
        ("model:org/m:7b", ArmAsk("model:org/m:7b", "model", "org/m:7b")),
        ("small=model:m", ArmAsk("small", "model", "m")),
        ("policy:careful@3", ArmAsk("policy:careful@3", "policy", "careful@3")),
        ("new=policy:./draft.toml", ArmAsk("new", "policy", "./draft.toml")),
        ("mini=command:FOO=1 mini -t x", ArmAsk("mini", "command", "FOO=1 mini -t x")),
        ("x=command:a\nb", ArmAsk("x", "command", "a\nb")),
    ],
)
def test_an_arm_is_read(text, ask):
    """With the name that reports show."""
    assert read_arms([text]) == (ask,)


def test_without_arms_what_is_routed_is_measured():
    """Alone."""
    assert read_arms([]) == (ArmAsk("auto", "auto"),)


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (["best"], "is no arm"),
        (["model:"], "'model:' names no model"),
        (["model: "], "names no model"),
        (["x=command:"], "'x=command:' names no command"),
        (["policy:"], "names no policy"),
        (["command:true"], "has no name"),
        (["a b=auto"], "is no arm"),
        (["auto", "auto"], "Two arms"),
        (["x=auto", "x=model:m"], "Two arms"),
    ],
)
def test_a_wrong_arm_is_wrong_usage(texts, says):
    """It is said what would be right."""
    with pytest.raises(UsageError, match=says) as caught:
        read_arms(texts)
    assert caught.value.mend


def test_an_arm_is_another_once_anything_of_it_is():
    """Its name too: the same policy against itself shows what chance does."""
    ask = ArmAsk("auto", "auto")
    digests = {
        Arm.of(ask, ("p",)).digest,
        Arm.of(ask, ("q",)).digest,
        Arm.of(ask, ("p", "")).digest,
        Arm.of(ArmAsk("other", "auto"), ("p",)).digest,
        Arm.of(ArmAsk("auto", "model", "p"), ()).digest,
    }
    assert len(digests) == 5
    assert Arm.of(ask, ("p",)) == Arm.of(ask, ("p",))


def test_a_bare_name_is_told_what_it_may_have_meant():
    """Most likely a model, or the file of a draft."""
    for text, meant in (("big", "model:big"), ("draft.toml", "policy:draft.toml")):
        with pytest.raises(UsageError, match="is no arm") as caught:
            read_arms([text])
        assert f"Did you mean `{meant}`?" in caught.value.mend
