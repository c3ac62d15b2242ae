"""What the cluster is asked for, and what it tells of it."""
