"""A check-up of models: what breaks agents, tried out on tiny repositories of our own."""
