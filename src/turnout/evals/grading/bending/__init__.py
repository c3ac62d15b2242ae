"""A second look at tests that pass: as they are once what they expect is another thing."""
