"""Choosing a solution: candidates, rules, bounds, questions."""
