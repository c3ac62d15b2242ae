"""Where packages come from: what the user's own pip and npm are told, and the way there."""
