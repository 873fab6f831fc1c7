"""Studies on two images on one canvas."""
