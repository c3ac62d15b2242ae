"""What the service keeps of a run beside its record."""
