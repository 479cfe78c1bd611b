"""Processes, their devices and files."""
