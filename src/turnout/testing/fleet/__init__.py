"""A service of several processes that are killed while they work, and what becomes of its runs."""
