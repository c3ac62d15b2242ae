"""A model's reply put into the bytes of the files, definition by definition."""
