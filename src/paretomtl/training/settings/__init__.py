"""Settings of a run: checked options, preference rows, and the identity by which a run is resumed."""
