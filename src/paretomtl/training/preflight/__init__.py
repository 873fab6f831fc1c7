"""Pre-flight checks of a problem, before anything is trained."""
