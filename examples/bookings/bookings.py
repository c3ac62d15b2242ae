"""Bookings of one meeting room, in minutes since midnight."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Booking:
    start: int
    end: int

    def __post_init__(self):
        if self.end <= self.start:
            raise ValueError("a booking must end after it starts")


def clashes(first, second):
    """Whether two bookings want the room at the same time."""
    return first.start <= second.end and second.start <= first.end


def free_slots(bookings, opens, closes):
    """The gaps between bookings while the room is open, as (start, end) pairs."""
    slots = []
    at = opens
    for booking in sorted(bookings, key=lambda booking: booking.start):
        if booking.start > at:
            slots.append((at, booking.start))
        at = max(at, booking.end)
    if at < closes:
        slots.append((at, closes))
    return slots


def can_book(bookings, wanted, opens, closes):
    """Whether the room is open and free for `wanted`."""
    if wanted.start < opens or wanted.end > closes:
        return False
    return not any(clashes(wanted, booking) for booking in bookings)
