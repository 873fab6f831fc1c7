"""Files of data sets: downloads, prepared arrays, images, tables."""
