"""Starts the user's command, watches it, and ends everything that it started."""
