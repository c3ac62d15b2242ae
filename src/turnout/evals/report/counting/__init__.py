"""Figures of single arms and of pairs of arms."""
