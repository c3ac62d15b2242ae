"""One adapter for each host, over the package that the host publishes."""
