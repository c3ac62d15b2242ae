"""What the console is made of."""
