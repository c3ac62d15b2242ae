"""What a repository says that its tests need, read from its files without running any of it."""
