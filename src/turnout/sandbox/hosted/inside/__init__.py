"""What runs on a rented machine: standard library only, Python 3.8 or newer."""
