"""Plots of a report, as SVG that takes its colours from the page."""
