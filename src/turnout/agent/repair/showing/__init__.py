"""What the model is shown: code, tests and test output, cut to size."""
