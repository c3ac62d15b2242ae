import pytest

from bookings import Booking, can_book, clashes, free_slots

MORNING = Booking(9 * 60, 10 * 60)
LATE_MORNING = Booking(10 * 60, 11 * 60)


def test_overlapping_bookings_clash():
    assert clashes(MORNING, Booking(9 * 60 + 30, 10 * 60 + 30))


def test_a_booking_inside_another_clashes():
    assert clashes(MORNING, Booking(9 * 60 + 15, 9 * 60 + 45))


def test_back_to_back_bookings_do_not_clash():
    assert not clashes(MORNING, LATE_MORNING)
    assert not clashes(LATE_MORNING, MORNING)


def test_the_room_can_be_booked_right_after_another_booking():
    assert can_book([MORNING], LATE_MORNING, 8 * 60, 18 * 60)


def test_the_room_cannot_be_booked_outside_opening_hours():
    assert not can_book([], Booking(7 * 60, 9 * 60), 8 * 60, 18 * 60)


def test_free_slots_are_the_gaps():
    assert free_slots([LATE_MORNING], 9 * 60, 12 * 60) == [(540, 600), (660, 720)]


def test_a_booking_needs_a_length():
    with pytest.raises(ValueError):
        Booking(600, 600)
