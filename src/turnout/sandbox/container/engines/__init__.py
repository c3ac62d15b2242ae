"""Container engines: finding one, asking what it holds, and telling it what to start."""
