"""`[service.queue]` as it is read."""

import pytest

from turnout.core.service.queues import QueueOptions
from turnout.errors import ConfigError
from turnout.settings.queues import queue_of
from turnout.settings.tables import QueueTable


def test_a_queue_is_its_address_and_what_it_is_called() -> None:
    """The dead one is called after it; without a table there is none."""
    assert queue_of(None) is None
    assert queue_of(QueueTable(url_env="QUEUE_URL")) == QueueOptions("QUEUE_URL")
    named = QueueTable(url_env="QUEUE_URL", name="orders", group="two", key="queue")
    assert queue_of(named) == QueueOptions("QUEUE_URL", "orders", "orders.dead", "two", "queue")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (QueueTable(url_env="redis://localhost"), "service.queue.url_env"),
        (QueueTable(url_env="QUEUE_URL", name="a", dead="a"), "round for ever"),
    ],
)
def test_a_queue_that_cannot_be_is_refused(table: QueueTable, said: str) -> None:
    """An address in the file would be a password in it; a queue cannot be its own dead one."""
    with pytest.raises(ConfigError, match=said):
        queue_of(table)
