"""When second thoughts are tried."""

from tests.samples import receipt

from turnout.agent.repair.grafting.matching import Target
from turnout.agent.repair.ladder import Rung
from turnout.agent.repair.pool import Pool
from turnout.core.ids import RequestId
from turnout.core.inference import Alternative, ModelReply
from turnout.core.messages import AssistantMessage
from turnout.core.usage import Usage


def reply(name: str, count: int) -> ModelReply:
    """Return a reply with so many second thoughts, each with a number and less likely."""
    routing = receipt().routing
    assert routing is not None
    text = f"```python\n{name} = 1 + 2 + 3 + 4\n```"
    others = tuple(Alternative(15 + n, f"{name}{n}", "?", -float(n)) for n in range(count))
    return ModelReply(
        RequestId("r"), AssistantMessage(text), "stop", Usage(1, 1), routing, 1, others
    )


def rung(name: str) -> Rung:
    """Return how a reply was asked for."""
    return Rung("mend", 0.8, 7, Target("a.py", name))


def taken(pool: Pool) -> list[str]:
    """Take all that is due."""
    found = []
    while (each := pool.next()) is not None:
        assert each.fork is not None
        found.append(each.fork.text)
    return found


def test_the_likeliest_of_a_reply_come_right_after_it() -> None:
    """To the same question, and greedy from there."""
    pool = Pool()
    assert pool.next() is None
    pool.add(rung("a"), reply("a", 12))
    first = pool.next()
    assert first is not None
    assert (first.ask, first.target, first.temperature) == ("mend", Target("a.py", "a"), 0.0)
    assert taken(pool) == [f"a{n}" for n in range(1, 8)]


def test_earlier_replies_have_their_turn_again() -> None:
    """One of each, the first two that have any left."""
    pool = Pool()
    for name in "abcd":
        pool.add(rung(name), reply(name, 10))
    assert [each for each in taken(pool) if each[1] > "7"] == ["a8", "a9", "b8", "b9", "c8"]


def test_the_last_are_taken_when_no_more_replies_come() -> None:
    """The likeliest of any reply; then there is none."""
    pool = Pool()
    pool.add(rung("a"), reply("a", 10))
    pool.add(rung("b"), reply("b", 9))
    taken(pool)
    left = []
    while (each := pool.last()) is not None:
        assert each.fork is not None
        left.append(each.fork.text)
    assert left == ["b8", "a9"]
    assert taken(pool) == []
