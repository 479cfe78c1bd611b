"""Transforms of pictures: which draw at random, which are fixed, and what they make of samples."""
