"""API shapes at the edge of the gateway: bytes to values and back."""
