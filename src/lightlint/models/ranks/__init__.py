"""Processes that train together."""
