"""What the failing tests run, as a tracer inside the sandbox saw it."""
