"""Models for evaluations whose results are known before."""
