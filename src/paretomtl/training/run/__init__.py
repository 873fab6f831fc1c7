"""A run: its start, its loop, its state, its checkpoints and its end."""
