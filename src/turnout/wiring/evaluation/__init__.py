"""What evaluations are run with."""
