"""`/runs`: ordered, listed, followed, decided on."""
