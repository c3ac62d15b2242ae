"""What runs cost, beside what their models charge."""
