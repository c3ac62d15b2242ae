"""The walls around everything that a model asks for, and the checkout inside them."""
