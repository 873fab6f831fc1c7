"""MultiMNIST and its kin: two or three images on one canvas."""
