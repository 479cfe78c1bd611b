"""Activations before losses."""
