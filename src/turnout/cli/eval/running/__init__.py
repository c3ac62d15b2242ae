"""`turnout eval run`: trials worked through, shown while they are."""
