"""One store per noun: the same statements for SQLite and PostgreSQL."""
