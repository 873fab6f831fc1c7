"""Files of data sets: downloads, the cache, prepared arrays, images, text."""
