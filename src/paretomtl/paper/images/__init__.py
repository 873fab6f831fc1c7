"""Studies on canvases of two images."""
