"""Imports: lazy ones, optional packages, names given as text."""
