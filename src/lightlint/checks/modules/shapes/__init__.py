"""Dimensions and their order."""
