"""Evaluation on real bugs: instances, trials, honest grading."""
