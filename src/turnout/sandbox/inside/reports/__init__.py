"""What is told of tests inside a sandbox, and who hears it."""
