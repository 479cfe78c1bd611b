"""Texts and tokens: labels, padding, generation."""
