"""Trials: each instance worked on by each arm through the real service, graded and kept."""
