"""Pages of what governs everybody: policies, models, connections, keys, usage and events."""
