"""Versions: what a project pins, and which a file is written for."""
