"""Whether a patch mends its instance, judged by tests that its author never saw."""
