"""What clients, models and upstreams say to each other, free of any API shape."""
