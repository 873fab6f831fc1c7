"""Progress of runs: reports, callbacks, displays, and the remaining time."""
