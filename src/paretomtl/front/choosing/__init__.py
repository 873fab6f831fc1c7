"""Choosing a model: candidates, rules, bounds, questions."""
