"""What a run's record tells of its time: spans, and its slowest steps."""
