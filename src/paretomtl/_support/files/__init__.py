"""Files: atomic writes, tensors, locks, safe opening."""
