"""Cloud accounts through which models are reached; each needs its own module alone."""
