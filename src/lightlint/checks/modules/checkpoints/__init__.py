"""Checkpoints and resuming."""
