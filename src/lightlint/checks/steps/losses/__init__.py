"""Losses and what they are given."""
