"""What evaluations show of models, for routing to go by."""
