"""LL7: API removed or deprecated."""
