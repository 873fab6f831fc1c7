"""Census-Income (KDD): the problem, the published text, the prepared file."""
