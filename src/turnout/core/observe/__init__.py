"""What is told of the work to those who watch over it: spans, metrics, and whose work it is."""
