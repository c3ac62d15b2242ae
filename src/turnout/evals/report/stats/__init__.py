"""Statistics of paired trials; numbers in, numbers out."""
