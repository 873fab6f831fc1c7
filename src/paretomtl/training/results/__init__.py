"""Results of a run: snapshots, the best epochs, the front, and warnings about it."""
