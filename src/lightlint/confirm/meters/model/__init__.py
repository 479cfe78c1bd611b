"""Meters of the model and of what trains it."""
