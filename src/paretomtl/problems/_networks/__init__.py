"""Networks of the built-in problems."""
