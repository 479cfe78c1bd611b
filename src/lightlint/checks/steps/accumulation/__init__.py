"""Gradients of several batches in one step."""
