"""The tools, one per file, and the surfaces that group them."""
