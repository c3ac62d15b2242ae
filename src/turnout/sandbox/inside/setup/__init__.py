"""Programs for the inside of set-up sandboxes alone."""
