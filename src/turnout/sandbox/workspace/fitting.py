"""Finding out what can be had together, when all of it cannot."""

from collections.abc import Awaitable, Callable, Sequence

__all__ = ["most_that_fit"]


async def most_that_fit(
    wanted: Sequence[str], fit: Callable[[Sequence[str]], Awaitable[bool]]
) -> list[str]:
    """Return a part of `wanted`, in its order, that fits together; as large as halving finds.

    Where each one fits or not by itself, that is all that do, after about twice as many questions
    as there are misfits times the halvings of the whole.
    """
    if not wanted or await fit(wanted):
        return list(wanted)
    if len(wanted) == 1:
        return []
    middle = len(wanted) // 2
    first = await most_that_fit(wanted[:middle], fit)
    second = await most_that_fit(wanted[middle:], fit)
    both = first + second
    if not first or not second or await fit(both):
        return both
    return max(first, second, key=len)
