"""Keys: made once, known by their hash, limited in what runs under them at once."""
