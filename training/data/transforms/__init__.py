"""Random augmentation of training images."""
