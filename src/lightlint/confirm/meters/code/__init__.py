"""Meters at the lines of findings, and of what the program's names hold."""
