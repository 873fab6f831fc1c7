"""Figures of fronts and comparisons, drawn by matplotlib."""
