"""Progress of runs: reports, callbacks, displays, and the time that is left."""
