"""Routes beside the model calls themselves."""
