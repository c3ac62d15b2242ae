"""From the table of a queue to what the service takes."""

from turnout.core.service.queues import QueueOptions
from turnout.errors import ConfigError
from turnout.gateway.config.addresses import variable_of_key
from turnout.settings.tables import QueueTable

__all__ = ["queue_of"]


def queue_of(table: QueueTable | None) -> QueueOptions | None:
    """Return the queue that orders come from; `ConfigError` names the key that is wrong."""
    if table is None:
        return None
    try:
        variable = variable_of_key(table.url_env)
    except ValueError as error:
        raise ConfigError(f"`service.queue.url_env` {error}.") from error
    dead = table.dead or f"{table.name}.dead"
    if dead == table.name:
        raise ConfigError(
            "`service.queue.dead` is the queue itself: its messages would go round for ever.",
            mend=f"Leave it out: it is {table.name}.dead then.",
        )
    return QueueOptions(variable, table.name, dead, table.group, table.key)
