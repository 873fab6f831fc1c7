"""MultiMNIST and its variants: two or three images on one canvas."""
