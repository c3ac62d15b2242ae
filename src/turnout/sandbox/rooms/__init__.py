"""Set-up sandboxes: how they are started, bounded, and passed files."""
