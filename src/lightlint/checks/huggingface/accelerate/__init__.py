"""Accelerate: what it is to start, and to prepare."""
