"""Computations that lose digits."""
