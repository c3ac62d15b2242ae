"""What an order, given again, brings about outside of the service."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from turnout.core.service.orders import Order

__all__ = ["repeated"]


def repeated(order: Order) -> Iterator[str]:
    """Yield what is done with a run of the same order, each as a clause of a sentence."""
    match order.publish:
        case "branch":
            yield "the diff is pushed to a new branch"
        case "draft":
            yield "the diff is pushed to a new branch with a draft request"
        case None:
            pass
    if order.origin is not None:
        origin = order.origin
        yield f"the end is told at {origin.forge} {origin.path} #{origin.number}"
    if order.notify is not None:
        # The rest of the address may be a secret.
        yield f"{urlsplit(order.notify).hostname} is told"
