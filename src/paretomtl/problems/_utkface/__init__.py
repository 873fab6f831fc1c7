"""UTKFace: gender, race and age of faces."""
