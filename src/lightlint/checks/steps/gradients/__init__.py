"""Backward passes, clearing and clipping."""
